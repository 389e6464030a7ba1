"""What the page of a session shows, of facts that a test has noted."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from html import unescape
from html.parser import HTMLParser
from typing import Any

import attrs
import pytest

from emceepee_trio.config import Limits
from emceepee_trio.model import facts
from emceepee_trio.model.states import TaskState
from emceepee_trio.session.session import Session
from emceepee_trio.web.page.timeline.look import PAGE
from page_world import HTML, Browser, PageWorld, open_page

MARKUP = "<script>alert(1)</script>\"'\x1b[31m"


@attrs.define(eq=False)
class Scene:
    world: PageWorld
    session: Session
    browser: Browser
    began: float = attrs.field(factory=time.time)

    def note(self, at: float, kind: Any, *args: object) -> None:
        """So many seconds after the beginning."""
        journal = self.world.manager.journal
        journal.clock, clock = (lambda: self.began + at), journal.clock
        journal.note(kind, self.session.id, *args)
        journal.clock = clock

    def call(self, at: float, name: str, tool: str = "log", ends: float | None = None) -> None:
        self.note(at, facts.CallBegun, name, "git", tool, True, 9, None)
        self.note(at, facts.CallSent, name)
        if ends is not None:
            how = TaskState.COMPLETED, False, 5, None
            self.note(ends, facts.CallSettled, name, "git", tool, *how)

    async def name(self) -> str:
        (found,) = (await self.browser.json("/sessions"))["sessions"]
        return str(found["name"])

    async def page(self, query: str = "") -> str:
        return await self.browser.page(f"/sessions/{await self.name()}{query}")

    async def json(self, query: str = "") -> Any:
        return await self.browser.json(f"/sessions/{await self.name()}{query}")


@asynccontextmanager
async def open_scene(**limits: int) -> AsyncGenerator[Scene]:
    async with open_page(limits=attrs.evolve(Limits(), **limits)) as world:
        yield Scene(world, await world.session(), await world.logged_in())


async def test_what_others_wrote_is_text() -> None:
    async with open_scene() as scene:
        scene.session.named(MARKUP)
        scene.call(0, "c", MARKUP)
        scene.world.manager.journal.note(facts.Tallied, scene.session.id, MARKUP, 1, 2)
        for text in (await scene.page(), await scene.browser.page("/sessions")):
            assert "<script>alert" not in text
            assert "<script>alert(1)</script>" in unescape(text)
            assert "style=" not in text
            assert not re.search(r"<[^>]*\son\w+=", text)


async def test_everything_that_is_drawn_is_inside_and_said_in_a_table() -> None:
    async with open_scene() as scene:
        scene.call(-10, "c", ends=-4)
        scene.call(-3, "d", "commit")
        scene.note(-2, facts.QuestionOpened, "q", "elicitation", "git", "d", 9)
        scene.note(-2, facts.CallAsked, "d", "q")
        assert "3 rows in " in await scene.page()
        scene.note(-9, facts.ConnectionTrying, "git", 1)
        scene.note(-8, facts.ConnectionUp, "git", 1, False)
        text = await scene.page()
    assert "3 rows, beside 1 connection, in " in text
    seen = Drawn()
    seen.feed(text)
    assert seen.bars
    assert all(x >= 0 and x + width <= 100.01 for x, width in seen.bars)
    assert "waits for an answer" in text
    said = [re.sub(r"\s+", " ", row) for row in seen.rows]
    assert "log git" in said[3]
    assert "completed 6.00 s" in said[3]


class Drawn(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.bars: list[tuple[float, float]] = []
        self.rows: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        is_bar = tag == "rect" and (given.get("class") or "").startswith("phase ")
        if is_bar and "%" in (given.get("x") or ""):
            x, width = (str(given[name]).rstrip("%") for name in ("x", "width"))
            self.bars.append((float(x), float(width)))
        if tag == "tr":
            self.rows.append("")

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1] += f" {data.strip()}" if data.strip() else ""


async def test_the_newest_rows_come_first_with_what_still_is_under_way() -> None:
    async with open_scene() as scene:
        scene.call(-2000, "old", "index")
        for number in range(2 * PAGE):
            scene.call(number - 1000, f"c{number}", ends=number - 999.5)
        said = await scene.json()
        ids = [row["id"] for row in said["rows"]]
        assert ids == ["old", *[f"c{number}" for number in range(PAGE, 2 * PAGE)]]
        assert (said["count"], said["pages"]) == (2 * PAGE + 1, 3)
        second = [row["id"] for row in (await scene.json("?page=2"))["rows"]]
        assert second == ["old", *[f"c{number}" for number in range(PAGE)]]
        assert [row["id"] for row in (await scene.json("?page=3"))["rows"]] == ["old"]
        page = await scene.page("?page=2")
        assert "Earlier rows" in page
        assert "Later rows" in page


async def test_links_lead_to_other_pieces_of_time_and_keep_what_was_chosen() -> None:
    async with open_scene() as scene:
        for number in range(40):
            scene.call(number - 40, f"c{number}", "log" if number % 2 else "diff", number - 39.7)
        text = await scene.page("?tool=log")
        links = {
            label: unescape(query)
            for query, label in re.findall(r'href="[^"?]*(\?[^"]*)" data-zoom="([^"]+)"', text)
        }
        assert {"Zoom in", "Last 10 s"} <= links.keys()
        inner = await scene.json(links["Zoom in"])
        assert {row["name"] for row in inner["rows"]} == {"log"}
        assert 3 < len(inner["rows"]) < 20
        assert inner["window"]["from_s"] > inner["whole"]["from_s"]
        last = await scene.json(links["Last 10 s"])
        assert [row["id"] for row in last["rows"]] == ["c31", "c33", "c35", "c37", "c39"]
        assert await scene.json("?tool=&server=git&outcome=completed&kind=call")


@pytest.mark.parametrize("query", ["?from=x", "?to=nan", "?last=1e999", "?page=many"])
async def test_what_is_no_number_is_refused(query: str) -> None:
    async with open_scene() as scene:
        scene.call(0, "c")
        answer = await scene.browser.get(f"/sessions/{await scene.name()}{query}", HTML)
        assert answer.status == 400
        assert "is a number of seconds" in answer.body.decode()


@pytest.mark.parametrize("query", ["?from=1e9", "?to=-1e300", "?last=-5", "?last=0", "?page=99"])
async def test_what_is_far_away_is_empty(query: str) -> None:
    async with open_scene() as scene:
        scene.call(-1, "c", ends=0)
        assert await scene.page(query)


async def test_what_has_just_ended_can_be_looked_at_and_what_did_nothing_is_a_number() -> None:
    async with open_scene() as scene:
        scene.call(-1, "c")
        scene.world.manager.journal.note(facts.Tallied, scene.session.id, "git", 4000, 8000)
        idle = await scene.world.session("ada/idle")
        assert (await scene.browser.json("/sessions"))["idle"] == 1
        name = await scene.name()
        for session in (scene.session, idle):
            scene.world.manager.end(session, "client")
        said = await scene.json()
        assert said["session"]["name"] == name
        assert said["session"]["why_ended"] == "client"
        assert said["ledger"]["servers"] == [
            {
                "server": "git",
                "definitions_bytes": 4000,
                "results_bytes": 8000,
                "tokens": 3000,
            }
        ]
        listed = await scene.browser.json("/sessions")
        assert (len(listed["sessions"]), listed["idle"]) == (1, 0)


async def test_nobody_sees_sessions_of_others() -> None:
    async with open_scene() as scene:
        scene.call(0, "c")
        name = await scene.name()
        ada, other = await scene.world.logged_in("s3cret"), scene.world.browser()
        assert (await ada.json(f"/sessions/{name}"))["count"] == 1
        theirs = await scene.world.session("token/x", "token")
        scene.world.manager.journal.note(
            facts.CallBegun, theirs.id, "d", "git", "log", False, 0, None
        )
        found = (await scene.browser.json("/sessions"))["sessions"]
        (hidden,) = (each["name"] for each in found if each["name"] != name)
        assert (await ada.get(f"/sessions/{hidden}")).status == 404
        assert [each["name"] for each in (await ada.json("/sessions"))["sessions"]] == [name]
        assert (await other.get(f"/sessions/{name}")).status in {302, 303}


async def test_where_no_facts_are_kept_it_is_said() -> None:
    async with open_scene(facts=0) as scene:
        scene.call(0, "c")
        assert "limits.facts" in await scene.browser.page("/sessions")
        answer = await scene.browser.get("/sessions/whatever", HTML)
        assert answer.status == 404
        assert "limits.facts" in answer.body.decode()


async def test_what_was_dropped_is_counted() -> None:
    async with open_scene(facts=100) as scene:
        for number in range(100):
            scene.call(number - 200, f"c{number}", ends=number - 199.5)
        said = await scene.json()
        assert said["session"]["dropped_facts"] > 150
        assert said["rows"][-1]["id"] == "c99"
        assert "are not kept" in await scene.page()
