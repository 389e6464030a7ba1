// What the picture of a session can do beside its links: the arrow keys go from row to row, "+" and
// "-" and the arrows with shift change the piece of time, and so does drawing one on the overview.
"use strict";

(() => {
  const go = (label) => document.querySelector(`[data-zoom="${label}"]`)?.click();
  const keys = { "+": "Zoom in", "-": "Zoom out", 0: "All of it" };
  const summaries = () => [...document.querySelectorAll(".rows summary")];

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) return;
    if (keys[event.key]) { event.preventDefault(); go(keys[event.key]); return; }
    if (event.shiftKey && event.key === "ArrowLeft") { event.preventDefault(); go("Earlier"); return; }
    if (event.shiftKey && event.key === "ArrowRight") { event.preventDefault(); go("Later"); return; }
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[event.key];
    if (!step) return;
    const all = summaries();
    const at = all.indexOf(document.activeElement);
    if (at < 0 && event.key.startsWith("Arrow")) return;
    event.preventDefault();
    all[Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
  });

  // Who is led to a row sees its facts

  const opened = () => {
    const row = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const details = row && row.matches(".rows tbody") && row.querySelector("details");
    if (details) details.open = true;
  };
  addEventListener("hashchange", opened);
  opened();

  // A piece of time, drawn with the pointer

  let from = null;
  let drawn = null;

  const overview = () => document.getElementById("overview");
  const share = (event) => {
    const box = overview().getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };

  document.addEventListener("pointerdown", (event) => {
    if (overview()?.contains(event.target) && event.button === 0) from = share(event);
  });
  document.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = share(event);
    if (!drawn && Math.abs(to - from) > 0.005) {
      drawn = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      drawn.setAttribute("class", "drag");
      drawn.setAttribute("height", "100%");
      overview().append(drawn);
    }
    drawn?.setAttribute("x", `${Math.min(from, to) * 100}%`);
    drawn?.setAttribute("width", `${Math.abs(to - from) * 100}%`);
  });
  document.addEventListener("pointerup", (event) => {
    if (drawn) {
      const { begins, ends } = overview().dataset;
      const at = (part) => (Number(begins) + part * (Number(ends) - Number(begins))).toFixed(4);
      const to = share(event);
      const url = new URL(location.href);
      for (const name of ["last", "page"]) url.searchParams.delete(name);
      url.searchParams.set("from", at(Math.min(from, to)));
      url.searchParams.set("to", at(Math.max(from, to)));
      location.assign(url);
    }
    drawn?.remove();
    from = drawn = null;
  });
  document.addEventListener("dragstart", (event) => {
    if (overview()?.contains(event.target)) event.preventDefault();
  });
})();
