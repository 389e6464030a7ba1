"""Pictures of the page: ``python tests/support/page_pictures.py [FOLDER]``.

With a folder, all of them are put there, to be looked at: light and dark, on a desk and on a phone,
timelines of 1, 12 and 300 calls and of an hour, and a form of each type. Without one, those of the
documentation are made anew.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from browsing import DESK, PHONE, Chromium, chromium, window, yes_or_no
from emceepee_trio.config import Server
from emceepee_trio.model import facts
from emceepee_trio.model.states import TaskState
from emceepee_trio.session.session import Session
from fake_backends import demo, raw
from page_world import PageWorld, open_page

DOCS = Path(__file__).parents[2] / "docs" / "pictures"

EVERY_TYPE = {
    "type": "object",
    "required": ["name", "plan", "agree"],
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "As on the invoice"},
        "mail": {"type": "string", "format": "email", "title": "Address for mail"},
        "day": {"type": "string", "format": "date", "title": "From which day on"},
        "at": {"type": "string", "format": "date-time", "title": "When exactly"},
        "page": {"type": "string", "format": "uri", "title": "Home page"},
        "seats": {"type": "integer", "minimum": 1, "maximum": 50, "default": 3, "title": "Seats"},
        "share": {"type": "number", "minimum": 0, "maximum": 1, "title": "Share of the costs"},
        "agree": {"type": "boolean", "title": "I have read what is said above"},
        "plan": {
            "type": "string",
            "title": "Plan",
            "oneOf": [
                {"const": "s", "title": "Small: one project"},
                {"const": "m", "title": "Middle: ten projects"},
                {"const": "l", "title": "Large: as many as you like"},
            ],
        },
        "days": {
            "type": "array",
            "title": "On which days",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["Monday", "Tuesday", "Friday"]},
        },
        "country": {"type": "string", "enum": [f"Country {n}" for n in range(1, 9)]},
        "note": {"type": "string", "maxLength": 2000, "title": "Anything else"},
    },
}
DEPLOY = yes_or_no("Deploy revision 4f2a91c to production?", "Deploy it")
SERVERS = {"raw": raw(), "demo": demo()}
BROKEN = "import sys; print('no module left-pad', file=sys.stderr); sys.exit(3)"
TOOLS = (
    *(("git", "log"), ("git", "diff"), ("git", "push"), ("files", "read_text_file")),
    *(("files", "search_files"), ("web", "fetch"), ("web", "search"), ("db", "query")),
)


@attrs.define(eq=False)
class Work:
    """What a session has done, as it would have been noted."""

    world: PageWorld
    began: float
    """Seconds ago."""
    session: Session = attrs.field(init=False)

    @contextmanager
    def at(self, seconds: float) -> Iterator[None]:
        """So long after its beginning."""
        journal = self.world.manager.journal
        clock = journal.clock
        journal.clock = lambda: clock() - self.began + seconds
        try:
            yield
        finally:
            journal.clock = clock

    def note(self, at: float, kind: Any, *args: object) -> None:
        with self.at(at):
            self.world.manager.journal.note(kind, self.session.id, *args)

    def connect(self, server: str, number: int, takes: float, at: float) -> None:
        self.note(at, facts.ConnectionTrying, server, number)
        self.note(at + takes, facts.ConnectionUp, server, number, number >= len(TOOLS))

    def lose(self, server: str, number: int, at: float) -> None:
        self.note(at, facts.ConnectionLost, server, number, False)
        self.note(at + 0.1, facts.ConnectionEnded, server, number)

    def call(self, name: str, server: str, tool: str, takes: float | None, at: float) -> None:
        self.note(at, facts.CallBegun, name, server, tool, True, 200, None)
        self.note(at + min(0.2, (takes or 1) / 5), facts.CallSent, name)
        is_task = takes is None or takes > PATIENCE
        if is_task and at + PATIENCE < self.began:
            self.note(at + PATIENCE, facts.CallPromoted, name, server, tool, 600_000)
        if takes is not None:
            fate = TaskState.FAILED if tool == "push" else TaskState.COMPLETED
            settled = (server, tool, fate, is_task, round(takes * 1000), None)
            self.note(at + takes, facts.CallSettled, name, *settled)
            size = round(400 * takes) + 300
            self.note(at + takes, facts.ResultTold, name, size)
            self.note(at + takes, facts.Tallied, server, 0, size)
            if is_task:
                self.note(at + takes + 5, facts.ResultRead, name)


PATIENCE = 45.0
HOUR = 3600.0


async def worked(world: PageWorld, calls: int, length: float, under_way: int = 0) -> None:
    """A session that has called so often in so many seconds."""
    done, drawn = Work(world, length), random.Random(calls)
    with done.at(0):
        done.session = await world.session(f"ada/{calls}")
        done.session.named("claude-code")
    used = TOOLS if calls > 1 else TOOLS[:1]
    acts: list[tuple[float, Callable[..., None]]] = []
    connections = {server: n for n, (server, _) in enumerate(used)}
    for server, number in connections.items():
        acts.append((0.1, partial(done.connect, server, number, 0.7)))
        done.note(1, facts.Tallied, server, drawn.randrange(2000, 30_000), 0)
    if length >= HOUR:
        acts.append((length * 0.4, partial(done.lose, "web", connections["web"])))
        acts.append((length * 0.4 + 30, partial(done.connect, "web", len(used), 20)))
    step = (length - 1.5) / calls
    for n in range(calls):
        at = 1 + step * (n + drawn.random() / 2)
        takes = max(0.01, min(drawn.lognormvariate(0, 1.6), length / 4, length - at - 0.1))
        goes_on = n >= calls - under_way
        server, tool = drawn.choice(used)
        name = f"c{calls}-{n}"
        acts.append((at, partial(done.call, name, server, tool, None if goes_on else takes)))
    for at, act in sorted(acts, key=lambda each: each[0]):
        act(at=at)


SCENES = {"one": (1, 4.0, 0), "twelve": (12, 30.0, 2), "many": (300, 400.0, 3)}
AN_HOUR = {"hour": (700, HOUR, 4)}
"""Timelines: calls, seconds, and how many calls are under way."""


@attrs.define(eq=False)
class Camera:
    """Takes pictures, in a thread."""

    url: str
    folder: Path
    open_link: Callable[[], str]
    paths: dict[str, str]

    def shoot(self, browser: Chromium, names: list[str], kind: str, **look: Any) -> None:
        with window(browser, **look) as person:
            page = person.open(self.url + self.open_link())
            page.wait_for_url(f"{self.url}/")
            for name in names:
                page.goto(self.url + self.paths[name])
                path = self.folder / f"{name}{kind}.png"
                page.screenshot(path=path, full_page=kind != DOCS_ONLY, animations="disabled")

    def all(self) -> None:
        names = list(self.paths)
        with chromium() as browser:
            for scheme in ("light", "dark"):
                for device, size in (("desk", DESK), ("phone", PHONE)):
                    look = {"color_scheme": scheme, "viewport": size}
                    self.shoot(browser, names, f"-{scheme}-{device}", **look)

    def of_the_docs(self) -> None:
        wide = {"viewport": {"width": 1100, "height": 900}, "color_scheme": "light"}
        with chromium() as browser:
            self.shoot(browser, ["now", "twelve"], DOCS_ONLY, **wide)
            self.shoot(browser, ["form"], DOCS_ONLY, viewport=PHONE, color_scheme="dark")


DOCS_ONLY = ""


async def main(folder: Path, camera: Callable[[Camera], None], scenes: dict[str, Any]) -> None:
    broken = Server("broken", command=sys.executable, args=("-c", BROKEN), start="lazy")
    servers = [*(Server(n, **it, start="lazy") for n, it in SERVERS.items()), broken]
    async with open_page(servers=servers, guard=600) as world:
        for scene in scenes.values():
            await worked(world, *scene)
        browser = await world.logged_in()
        listed = (await browser.json("/sessions"))["sessions"]
        paths = {
            name: f"/sessions/{found['name']}"
            for name, (calls, _, _) in scenes.items()
            for found in listed
            if found["calls"] == calls
        }
        tried = {
            "yes": ("raw", "ask", {"params": DEPLOY}),
            "form": (
                "raw",
                "ask",
                {"params": {"message": "Order it?", "mode": "form", "requestedSchema": EVERY_TYPE}},
            ),
            "url": ("demo", "ask_url", {}),
            "sampling": ("raw", "sample_question", {}),
        }
        for server, tool, args in (*tried.values(), ("demo", "slow", {"seconds": 3600})):
            path = f"/servers/{server}/tools/{tool}"
            await browser.submit(path, path, json=json.dumps(args))
        asked = partial(browser.json, "/api/now")
        # As a program does that looks at the page.
        while len(found := (await asked())["questions"]) < len(tried):  # noqa: ASYNC110 - see above
            await trio.sleep(0.1)
        for name, each in zip(tried, sorted(found, key=_order), strict=True):
            paths[name] = f"/questions/{each['session']}/{each['question']}"
        paths |= {
            "now": "/",
            "sessions": "/sessions",
            "servers": "/servers",
            "server": "/servers/raw",
            "edit": "/servers/raw/edit",
            "tools": "/servers/demo/tools",
            "tool": "/servers/demo/tools/slow",
            "tasks": "/tasks",
        }

        def link() -> str:
            return trio.from_thread.run(world.link)

        seen = Camera(f"http://{world.host}", folder, link, paths)
        await trio.to_thread.run_sync(camera, seen)


def _order(question: dict[str, Any]) -> int:
    kinds = {("elicitation", "form"): 1, ("elicitation", "url"): 2, ("sampling", None): 3}
    return 0 if question["quick"] else kinds.get((question["kind"], question["mode"]), 3)


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        trio.run(main, Path(sys.argv[1]), Camera.all, SCENES | AN_HOUR)
    else:
        trio.run(main, DOCS, Camera.of_the_docs, SCENES)
