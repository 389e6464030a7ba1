from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.backend.connections.callbacks import Abandoned, working_for
from emceepee_trio.config import Config, ConfigError, Limits, Server
from emceepee_trio.config.treatment import Retry
from emceepee_trio.daemon import Rereading, Settings
from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model import facts
from emceepee_trio.model.json.problems import Problem
from emceepee_trio.session.calls.call import Call, Result
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.web import reloading
from emceepee_trio.web.page import the_page
from emceepee_trio.web.page.common import live as live_
from emceepee_trio.web.page.common.live import CHANGED, SILENCE, STILL_HERE, Live, LiveStream
from emceepee_trio.web.page.waiting import wait_of
from fake_backends import raw, until
from page_world import open_page

NO_RESTART = Retry(enabled=False)
MORE_THAN_A_SOCKET_TAKES = 3000
"""Times that something has changed."""


async def never(call: Call) -> Result:
    await trio.sleep_forever()
    raise AssertionError


def begin(session: Session, server: str = "raw", within: Call | None = None) -> Call:
    return session.calls.begin(server, "tool", {}, never, patience=60, ttl=60, within=within)


def gone() -> Abandoned:
    return "call_ended"


async def ask(session: Session) -> None:
    """As a server does that does not say for which call."""
    working_for.set(None)
    await session.ask("raw", "elicitation", {}, gone)


async def waits(session: Session, call: Call) -> tuple[str, str]:
    await wait_all_tasks_blocked()
    found = wait_of(session, call)
    return found.what, found.said


async def test_each_call_says_what_it_waits_for() -> None:
    dying = Server("dying", **raw("--exit-at-once", 3), restart=NO_RESTART)
    async with open_page(servers=[Server("raw", **raw()), dying]) as world:
        session = await world.session()
        await session.backend("raw").connection()
        await until(lambda: session.backend("dying").last_error)
        call = begin(session)
        assert await waits(session, call) == ("connection", "raw, which is connected, to take it")
        session.calls.sent(call)
        assert await waits(session, call) == ("answer", "an answer of raw")
        what, said = await waits(session, begin(session, "dying"))
        assert what == "connection"
        assert "exited (code 3)" in said
        what, said = await waits(session, begin(session, "nobody"))
        assert said == "nobody, which is not there any more"


async def test_a_call_waits_for_who_is_asked() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world, trio.open_nursery() as nursery:
        session = await world.session()
        call = begin(session)
        session.calls.sent(call)
        nursery.start_soon(ask, session)
        assert await waits(session, call) == ("question", "your answer to what raw asks")
        (question,) = session.questions.open("elicitation")
        assert wait_of(session, call).question == question.id
        question.is_relayed = True
        what, said = await waits(session, call)
        assert (what, "its own client" in said) == ("client", True)
        nursery.cancel_scope.cancel("seen")


async def test_a_script_waits_for_its_calls() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        session = await world.session()
        script = begin(session, "emceepee")
        session.calls.sent(script)
        for _ in range(5):
            begin(session, within=script)
        assert await waits(session, script) == (
            "calls",
            "calls of its script: raw/tool, raw/tool, raw/tool and 2 more",
        )


async def test_a_call_waits_until_it_is_the_turn_of_its_program() -> None:
    silent = [Server(f"silent{n}", **raw("--silent")) for n in range(2)]
    async with open_page(servers=silent, limits=Limits(starting=1)) as world:
        session = await world.session()
        calls = [begin(session, server.name) for server in silent]

        def waits() -> dict[str, str]:
            return {w.what: w.said for w in (wait_of(session, call) for call in calls)}

        # Until it is known that it does not start at once, each is to be connected.
        await until(lambda: "queue" in waits())
        found = waits()
        assert found.keys() == {"connection", "queue"}
        assert "1 of at most 1 start now, limits.starting" in found["queue"]


async def test_the_first_page_shows_calls_servers_and_programs() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser = await world.logged_in()
        assert "emceepee connect" in await browser.page("/")
        session = await world.session()
        await session.backend("raw").connection()
        await world.session("bob/idle", "bob")
        assert "emceepee connect" not in await browser.page("/")
        old, young = begin(session), begin(session)
        now: Any = await browser.json("/api/now")
        assert [each["call"] for each in now["calls"]] == [old.id, young.id]
        assert now["sessions"] == {"working": 1, "idle": 1}
        (raw_,) = now["servers"]
        assert raw_["states"]["connected"] >= 1
        pids = {each["pid"] for each in now["children"]}
        process = session.backend("raw").process
        assert process is not None
        assert process.pid in pids
        while now["resident_bytes"] == 0:  # the first look may take longer than a page waits
            now = await browser.json("/api/now")
        shown = next(each for each in now["children"] if each["pid"] == process.pid)
        assert shown["processes"] >= 1
        assert os.getpid() not in pids
        assert "raw/tool" in await browser.page("/")


# -- what browsers are told -----------------------------------------------------------------------


@pytest.fixture
def clock(autojump_clock: MockClock) -> MockClock:
    return autojump_clock


def told(journal: Journal) -> Live:
    return Live(journal, {"s": "ada", "t": "bob"}.get, trio.Event())


async def next_of(stream: LiveStream) -> bytes:
    return await anext(aiter(stream))


async def test_a_browser_is_told_of_what_it_may_see(clock: MockClock) -> None:
    journal = Journal()
    live = told(journal)
    ada, operator = live.stream("ada"), live.stream(None)
    # At once, since something may have happened while its page was on the way.
    assert [await next_of(ada), await next_of(operator)] == [CHANGED] * 2
    journal.note(facts.CallSent, "t", "c")
    assert await next_of(operator) == CHANGED
    assert await next_of(ada) == STILL_HERE
    journal.note(facts.CallSent, "s", "c")
    assert await next_of(ada) == CHANGED
    # Of one whose session is gone nobody knows whose it was.
    journal.note(facts.CallSent, "gone", "c")
    assert await next_of(ada) == CHANGED


async def test_a_browser_is_told_when_the_configuration_is_read_again(clock: MockClock) -> None:
    def read() -> Settings:
        raise ConfigError([Problem("servers", "a mistake")])

    async with open_sessions(Config()) as manager:
        pages, reading = the_page(manager, dict), Rereading(read)
        reloading.add_to(pages, reading)
        reading.go_by = lambda settings: None
        stream = pages.live.stream("ada")
        assert await next_of(stream) == CHANGED
        reading.again()
        assert await next_of(stream) == CHANGED
        assert await next_of(stream) == STILL_HERE
        await stream.aclose()


async def test_what_happens_at_once_is_told_once(clock: MockClock) -> None:
    journal = Journal()
    live = told(journal)
    stream = live.stream(None)
    await next_of(stream)
    for _ in range(1000):
        journal.note(facts.CallSent, "s", "c")
    before = trio.current_time()
    assert await next_of(stream) == CHANGED
    assert trio.current_time() - before == live_.PAUSE
    assert await next_of(stream) == STILL_HERE
    assert trio.current_time() - before == 2 * live_.PAUSE + SILENCE
    # A daemon that takes long for a page is asked for it less often.
    for took, pause in ((0.3, 3.0), (60.0, live_.LONGEST_PAUSE), (0.001, live_.PAUSE)):
        live.took(took)
        journal.note(facts.CallSent, "s", "c")
        before = trio.current_time()
        assert await next_of(stream) == CHANGED
        assert trio.current_time() - before == pause


async def test_only_who_follows_a_log_is_told_of_its_lines(clock: MockClock) -> None:
    journal = Journal()
    live = told(journal)
    page, log, others = live.stream("ada"), live.stream("ada", "raw"), live.stream("ada", "x")
    for stream in (page, log, others):
        await next_of(stream)
    journal.note(facts.LineLogged, "s", "raw")
    assert [await next_of(each) for each in (log, page, others)] == [
        CHANGED,
        STILL_HERE,
        STILL_HERE,
    ]


async def test_streams_end_with_the_daemon_and_leave_nothing(clock: MockClock) -> None:
    journal = Journal()
    live = told(journal)
    stream = live.stream(None, "raw")
    await next_of(stream)
    live.ending.set()
    with pytest.raises(StopAsyncIteration):
        await next_of(stream)
    await stream.aclose()
    await stream.aclose()
    assert journal._wanted == {}


@pytest.mark.once
async def test_a_browser_that_hangs_up_leaves_nothing_and_one_that_never_reads_holds_nobody() -> (
    None
):
    async with open_page() as world:
        journal, session = world.manager.journal, await world.session()
        asked = f"GET /live HTTP/1.1\nHost: {world.host}\nAuthorization: Bearer minted\n\n"

        def readers() -> list[Reader]:
            return [reader for reader in journal.readers if reader.name == "page"]

        async with world.served.narrow_peer() as deaf:
            await deaf.send(asked)
            await until(lambda: bool(readers()))
            live = readers()[0].read.__self__  # type: ignore[attr-defined]  # it is a method
            live.pause = 0
            async with world.served.peer() as other:
                await other.send(asked)
                for _ in range(MORE_THAN_A_SOCKET_TAKES):
                    await other.until(CHANGED)
                    journal.note(facts.CallSent, session.id, "c")
                assert len(live._streams) == 2
            await until(lambda: len(live._streams) == 1)
        await until(lambda: not readers())
