// What a page does by itself while it is open. It works without: then it shows what there was
// when it was asked for. A stream says that something has changed; then the same page is asked for
// anew, and what differs is exchanged, but for what somebody is filling in.
"use strict";

(() => {
  const main = document.getElementById("main");
  const liveness = document.getElementById("liveness");
  const changedByHand = new WeakSet();

  // Times that go on: <time data-since="SECONDS">, as old as that when the page was made.
  let made = performance.now();

  const spelled = (seconds) => {
    const whole = Math.floor(seconds);
    if (whole < 60) return `${whole} s`;
    if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
    return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
  };

  const tick = () => {
    const passed = (performance.now() - made) / 1000;
    for (const each of document.querySelectorAll("[data-since]")) {
      const seconds = Number(each.dataset.since) + passed;
      if (seconds >= 1) each.textContent = spelled(seconds);
    }
  };

  // Exchanging

  const isHeld = (element) =>
    element.contains(document.activeElement) && element.matches("form, form *") || changedByHand.has(element);

  const exchange = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(fresh);
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.nodeName === "FORM" && isHeld(old)) return;
    for (const { name } of [...old.attributes])
      if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    for (const { name, value } of [...fresh.attributes])
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (old.dataset.since !== undefined) { old.textContent = fresh.textContent; return; }
    if (old.hasAttribute("data-kept")) return;
    exchangeChildren(old, fresh);
  };

  const exchangeChildren = (old, fresh) => {
    const known = new Map();
    for (const child of old.children) if (child.id) known.set(child.id, child);
    let place = old.firstChild;
    for (const child of [...fresh.childNodes]) {
      const same = child.id ? known.get(child.id) : null;
      if (same) {
        if (same === place) place = place.nextSibling;
        else old.insertBefore(same, place);
        exchange(same, child);
      } else if (place && !(place.id && known.has(place.id)) && !child.id && place.nodeName === child.nodeName) {
        const next = place.nextSibling;
        exchange(place, child);
        place = next;
      } else {
        old.insertBefore(child, place);
      }
      if (same) known.delete(child.id);
    }
    while (place) {
      const next = place.nextSibling;
      if (!(place.nodeType === Node.ELEMENT_NODE && isHeldWithin(place))) place.remove();
      place = next;
    }
  };

  // What is gone, but is being filled in, stays with a word about it.
  const isHeldWithin = (element) => {
    const form = [element, ...element.querySelectorAll("form")].find((each) => each.nodeName === "FORM" && isHeld(each));
    if (form && !form.querySelector("[data-gone]")) {
      const said = document.createElement("p");
      said.className = "wrong";
      said.dataset.gone = "";
      said.setAttribute("role", "alert");
      said.textContent = "This is over: it was answered elsewhere, withdrawn, or too late.";
      form.prepend(said);
      for (const button of form.querySelectorAll("button")) button.disabled = true;
    }
    return Boolean(form);
  };

  // What is followed stays at its end, unless somebody has scrolled up.
  const away = new WeakSet();
  const follow = () => {
    for (const each of document.querySelectorAll("[data-follow]")) {
      if (!away.has(each)) each.scrollTop = each.scrollHeight;
      each.onscroll = () => {
        const isAtEnd = each.scrollHeight - each.scrollTop - each.clientHeight < 24;
        if (isAtEnd) away.delete(each);
        else away.add(each);
      };
    }
  };

  let asking = false;
  let again = false;

  const refresh = async () => {
    if (document.hidden) { again = true; return; }
    if (asking) { again = true; return; }
    asking = true;
    again = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
      if (answer.type === "opaqueredirect") { location.reload(); return; }
      if (!answer.ok) return;
      const text = await answer.text();
      const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
      if (fresh) {
        made = performance.now();
        exchange(main, document.importNode(fresh, true));
        document.dispatchEvent(new Event("page:changed"));
      }
    } catch (error) {
      say("not connected");
    } finally {
      asking = false;
      if (again && !document.hidden) refresh();
    }
  };

  const say = (text) => {
    if (liveness.textContent !== text) liveness.textContent = text;
    liveness.hidden = !text;
  };

  // The stream. A browser tries again by itself where nobody answers, but not where the answer was
  // no: of a daemon that was started again, to which nobody has logged in yet, or of a proxy.

  const SHORTEST = 2000;
  const LONGEST = 60000;

  const listen = (where, pause) => {
    const stream = new EventSource(where);
    stream.addEventListener("changed", () => { say(""); refresh(); });
    stream.onopen = () => { say(""); pause = SHORTEST; };
    stream.onerror = () => {
      say("reconnecting …");
      if (stream.readyState !== EventSource.CLOSED) return;
      refresh();
      setTimeout(() => listen(where, Math.min(pause * 2, LONGEST)), pause);
    };
  };

  // The start

  const start = () => {
    const url = new URL(location.href);
    if (url.searchParams.has("notice")) {
      url.searchParams.delete("notice");
      history.replaceState(null, "", url);
    }
    document.addEventListener("input", (event) => {
      if (event.target.form) changedByHand.add(event.target.form);
    });
    document.addEventListener("submit", (event) => {
      const asked = event.submitter?.dataset.sure ?? event.target.dataset.sure;
      if (asked && !confirm(asked)) event.preventDefault();
    });
    setInterval(tick, 1000);
    follow();
    document.addEventListener("page:changed", follow);
    const where = document.body.dataset.live;
    if (!where) return;
    listen(where, SHORTEST);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
    window.page = { refresh };
  };

  start();
})();
