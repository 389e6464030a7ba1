"""Calls of the modern era whose stream is lost, and that are sent again: they run once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from asgi_client import Client, Exchange
from asgi_world import open_world
from emceepee_trio.config import Config, Limits, Server
from fake_backends import Journal, raw
from stalls import steps_measured


@attrs.define(eq=False)
class There:
    client: Client
    journal: Journal
    folder: Path
    way: str = "tool"

    def ask(self, name: str = "go", **more: Any) -> Exchange:
        """A call that is answered once there is a file of that name."""
        args: Any = {"file": str(self.folder / name)} | more
        match self.way:
            case "as it is":
                return self.client.modern("tools/call", name="slow", arguments=args)
            case "script":
                code = f"await call_tool('raw', 'slow', {args!r})"
                return self.client.modern_tool("codemode_execute", code=code)
        return self.client.modern_tool("execute_tool", server="raw", tool="slow", args=args)

    async def started(self, count: int) -> None:
        await self.journal.wait_for_marker("slow started", count)

    async def go(self, exchange: Exchange, name: str = "go") -> None:
        """It is answered."""
        await trio.Path(self.folder / name).touch()
        answer = (await exchange.complete()).messages[-1]
        assert "the file is there" in answer["result"]["content"][0]["text"]

    @property
    def runs(self) -> int:
        return len(self.journal.of("tools/call"))


@asynccontextmanager
async def opened(
    folder: Path, way: str = "tool", *, era: str = "", reissue_ms: int = 60_000, **entry: Any
) -> AsyncGenerator[There]:
    journal = Journal(folder / "journal")
    flags = ("--discover", "modern") if era == "modern" else ()
    server = Server(name="raw", **raw(*journal.flags, *flags), **entry)
    config = Config(servers=(server,), limits=Limits(reissue_ms=reissue_ms))
    with trio.fail_after(60):
        async with open_world(config) as world:
            there = There(world.client(), journal, folder, way)
            if way == "as it is":
                there.client.path = "/servers/raw/mcp"
            yield there


WAYS = [("tool", ""), ("as it is", ""), ("as it is", "modern"), ("script", "")]


@pytest.mark.parametrize(("way", "era"), WAYS)
async def test_a_call_that_is_sent_again_joins_the_first(
    tmp_path: Path, way: str, era: str
) -> None:
    async with opened(tmp_path, way, era=era) as there:
        for cuts in range(1, 4):
            lost = there.ask()
            await there.started(1)
            lost.drop()
            # Also right away, before anybody has seen that the first one is gone.
            if cuts % 2:
                await trio.testing.wait_all_tasks_blocked()
        await there.go(there.ask())
        assert there.runs == 1
        # That was answered, so this is another one.
        await there.go(there.ask())
        assert there.runs == 2


@pytest.mark.parametrize(("way", "era"), WAYS)
async def test_what_has_come_meanwhile_is_kept(tmp_path: Path, way: str, era: str) -> None:
    async with opened(tmp_path, way, era=era) as there:
        lost = there.ask()
        await there.started(1)
        lost.drop()
        await trio.Path(tmp_path / "go").touch()
        await there.journal.wait_for_marker("slow finished")
        await there.go(there.ask())
        assert there.runs == 1


async def test_as_many_run_as_were_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as there:
        both = [there.ask(), there.ask()]
        await there.started(2)
        for each in both:
            each.drop()
        await trio.testing.wait_all_tasks_blocked()
        again = [there.ask(), there.ask(), there.ask()]
        await there.started(3)
        for each in again:
            await there.go(each)
        assert there.runs == 3


async def test_another_call_is_another(tmp_path: Path) -> None:
    async with opened(tmp_path) as there:
        lost = there.ask(n=1)
        await there.started(1)
        lost.drop()
        await trio.testing.wait_all_tasks_blocked()
        others: list[dict[str, Any]] = [{"n": True}, {"n": 1.5}, {}]
        for number, more in enumerate(others, 2):
            other = there.ask(**more)
            await there.started(number)
            await there.go(other)
        assert there.runs == 4


async def test_nobody_waits_while_long_arguments_are_compared(tmp_path: Path) -> None:
    async with opened(tmp_path) as there:
        exchanges = []
        with steps_measured() as longest:
            for number in range(1, 6):
                exchanges.append(there.ask(long=["x" * 35_000] * 100))
                await there.started(number)
        for each in exchanges:
            await there.go(each)
    assert longest() < 0.02


@pytest.mark.parametrize(("way", "era"), WAYS)
async def test_who_does_not_come_again_has_cancelled_it(tmp_path: Path, way: str, era: str) -> None:
    async with opened(tmp_path, way, era=era, reissue_ms=200) as there:
        lost = there.ask()
        await there.started(1)
        lost.drop()
        await there.journal.wait_for_marker("slow cancelled")
        await there.go(there.ask())
        assert there.runs == 2


@pytest.mark.parametrize("off", [{"reissue": "run"}, {"reissue_ms": 0}])
async def test_where_it_is_off_it_is_cancelled_and_runs_again(
    tmp_path: Path, off: dict[str, Any]
) -> None:
    async with opened(tmp_path, **off) as there:
        lost = there.ask()
        await there.started(1)
        lost.drop()
        await there.journal.wait_for_marker("slow cancelled")
        again = there.ask()
        await there.started(2)
        await there.go(again)
        assert there.runs == 2
