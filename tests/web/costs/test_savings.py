"""What the log says of itself that sharing would save."""

from __future__ import annotations

import json

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio import logs
from emceepee_trio.backend.children.footprint import Footprint
from emceepee_trio.config import Server
from emceepee_trio.web.costs import programs, savings
from emceepee_trio.web.costs.programs import Programs
from emceepee_trio.web.costs.savings import EVERY, Savings
from sharers import open_sharers

MEGABYTE = 1_000_000


def entry(*args: str, **more: object) -> Server:
    return Server("x", command="peer", args=args, era="handshake", start="eager", **more)  # type: ignore[arg-type]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    said: list[dict[str, object]] = []

    def write(level: logs.Level, event: str, **fields: object) -> None:
        if event == "sharing_would_save":
            said.append({"level": level, **json.loads(json.dumps(fields))})

    async def footprints(pids: set[int]) -> dict[int, Footprint]:
        return {pid: Footprint(2, 10 * MEGABYTE) for pid in pids}

    monkeypatch.setattr(logs, "write", write)
    monkeypatch.setattr(programs, "footprints", footprints)
    return said


async def test_it_is_told_when_there_are_two_and_as_they_double(
    told: list[dict[str, object]], autojump_clock: MockClock
) -> None:
    async with open_sharers(entry("mcp-server-time")) as world:
        world.nursery.start_soon(Savings(world.manager).tell)
        for number in range(1, 6):
            await world.come(f"s{number}")
            await trio.sleep(2 * EVERY)
        assert [said["programs"] for said in told] == [2, 4]
        first = told[0]
        assert (first["server"], first["principal"], first["sessions"]) == ("x", "ada", 2)
        assert (first["resident_bytes"], first["saved_bytes"]) == (20 * MEGABYTE, 10 * MEGABYTE)
        assert first["keeps_nothing"] is True
        assert first["advice"] == savings.KNOWN
        for session in world.manager.sessions():
            world.manager.end(session, "over")
        await trio.sleep(2 * EVERY)
        for name in ("again", "another"):
            await world.come(name)
        await trio.sleep(2 * EVERY)
        assert [said["programs"] for said in told] == [2, 4, 2]


async def test_of_what_is_shared_or_of_different_principals_nothing_is_told(
    told: list[dict[str, object]], autojump_clock: MockClock
) -> None:
    for which in (entry(scope="principal"), entry()):
        async with open_sharers(which) as world:
            world.nursery.start_soon(Savings(world.manager).tell)
            for name in ("one", "two"):
                await world.come(name, "ada" if which.scope == "principal" else name)
            await trio.sleep(3 * EVERY)
            await wait_all_tasks_blocked()
            assert len(world.peers.open()) == 1 + (which.scope == "session")
            assert told == []


async def test_of_others_it_says_on_which_condition(
    told: list[dict[str, object]], autojump_clock: MockClock
) -> None:
    async with open_sharers(entry()) as world:
        world.nursery.start_soon(Savings(world.manager).tell)
        for name in ("one", "two"):
            await world.come(name)
        await trio.sleep(EVERY + 1)
        (said,) = told
        assert said["keeps_nothing"] is False
        assert str(said["advice"]).startswith("if it keeps nothing")


async def test_nobody_looks_while_nothing_starts_or_ends(
    told: list[dict[str, object]], autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []

    def looked(*_: object) -> list[Programs]:
        looks.append(trio.current_time())
        return []

    monkeypatch.setattr(savings, "programs", looked)
    async with open_sharers(entry()) as world:
        world.nursery.start_soon(Savings(world.manager).tell)
        await trio.sleep(1000 * EVERY)
        assert len(looks) == 1
        await world.come("one")
        await trio.sleep(1000 * EVERY)
        assert len(looks) == 2
