"""A server that is known is told of without a start; the first who needs it has it started."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from asgi_client import Client, Json
from asgi_world import World, open_world
from emceepee_client import Answer, Open, write_config
from emceepee_lines import Lines, open_pipes
from emceepee_trio.backend.catalogue.catalog import SOURCES
from emceepee_trio.config import parse
from fake_backends import Journal, raw, until
from served import serve

GUARD = 60.0


@attrs.define(eq=False)
class Window:
    """A client with a session of its own."""

    client: Client

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        return Answer.of(await self.client.call(tool, **arguments))

    async def says(self, tool: str, /, **arguments: Any) -> Any:
        return (await self.call(tool, **arguments)).json

    async def status(self, server: str = "raw") -> str:
        return str((await self.entry(server))["status"])

    async def entry(self, server: str = "raw") -> Json:
        found: Json = (await self.says("get_server_status", server=server))["server"]
        return found

    async def execute(self, text: str, server: str = "raw") -> list[str]:
        args = {"text": text}
        answer = await self.call("execute_tool", server=server, tool="echo", args=args)
        return answer.texts

    async def events(self, kind: str) -> list[Json]:
        """Of that type, once there is one."""
        while True:
            said = await self.says("await_activity", last_event_id="0")
            found = [e for group in said["events"] for e in group["events"] if e["type"] == kind]
            if found:
                return found


@attrs.define(eq=False)
class Daemon:
    world: World

    async def window(self, principal: str = "local") -> Window:
        return Window(await self.world.joined(principal=principal))

    async def learned(self, principal: str = "local", *names: str) -> Window:
        """The first session, from which the daemon knows what there is."""
        window = await self.window(principal)
        before, wanted = self.whole(), len(names or ("raw",))
        await until(lambda: self.whole() >= before + wanted)
        return window

    def whole(self) -> int:
        """Servers of which all lists are known."""
        memory = self.world.manager._shared.memory
        assert memory is not None
        return sum(len(known.lists) == len(SOURCES) for known in memory._known.values())


@asynccontextmanager
async def opened(servers: Mapping[str, Json], **settings: Any) -> AsyncGenerator[Daemon]:
    config = parse({"mcpServers": servers, **settings}, folder=Path("/"), environ={}).config
    async with open_world(config, GUARD) as world:
        yield Daemon(world)


def started(journal: Journal) -> int:
    """How often the program was."""
    return sum("started" in entry for entry in journal.entries())


async def test_the_second_session_is_told_what_there_is_and_starts_nothing(
    journal: Journal,
) -> None:
    async with opened({"raw": raw(*journal.flags)}) as daemon:
        first = await daemon.learned()
        there = await first.says("list_tools", detail="full")
        second = await daemon.window()
        (listed,) = (await second.says("list_servers", detail="full"))["servers"]
        whole = await first.entry()
        assert listed["status"] == "idle"
        assert listed["idle_since"]
        for key in ("protocol_version", "server_info", "capabilities", "has_instructions"):
            assert listed[key] == whole[key]
        said = await second.says("get_server_status", server="raw")
        assert said["server"]["status"] == "idle"
        assert said["instructions"] == "Raw instructions."
        assert "process" not in said
        assert said["recent_events"] == []

        told = await second.says("list_tools", detail="full")
        (group,) = told["tools"]
        as_of = group.pop("as_of")
        assert as_of.endswith("Z")
        assert told == there
        for tool in ("list_resources", "list_resource_templates", "list_prompts"):
            kind = tool.removeprefix("list_")
            entries = (await second.says(tool))[kind]
            known = [e for e in entries if e["server"] == "raw"]
            assert known
            assert (await second.says(tool, server="raw"))[kind] == known
            assert all(e.pop("as_of") for e in known)
            assert (await first.says(tool, server="raw"))[kind] == known
        assert (await second.says("list_tools", query="echo"))["tools"][0]["as_of"]
        found = await second.says("codemode_search", query="echo", kinds=["tools"])
        assert found["found"][0].startswith("raw.echo(")
        assert "errors" not in found
        assert await second.status() == "idle"
        assert started(journal) == 1


USES: dict[str, tuple[str, Json]] = {
    "call": ("execute_tool", {"tool": "echo"}),
    "read": ("read_resource", {"uri": "raw://text"}),
    "prompt": ("get_prompt", {"name": "greet", "arguments": {}}),
    "completion": (
        "complete",
        {"ref": {"prompt": "greet"}, "argument": {"name": "name", "value": "a"}},
    ),
    "subscription": ("subscribe_resource", {"uri": "raw://text"}),
    "fresh tools": ("list_tools", {"fresh": True}),
    "fresh resources": ("list_resources", {"fresh": True}),
    "fresh templates": ("list_resource_templates", {"fresh": True}),
    "fresh prompts": ("list_prompts", {"fresh": True}),
}


@pytest.mark.parametrize("era", [(), ("--discover", "modern")], ids=["handshake", "modern"])
async def test_the_first_use_of_any_kind_starts_it(journal: Journal, era: tuple[str, ...]) -> None:
    async with opened({"raw": raw(*journal.flags, *era)}) as daemon:
        await daemon.learned()
        for count, (tool, arguments) in enumerate(USES.values(), 2):
            window = await daemon.window()
            assert await window.status() == "idle"
            answer = await window.call(tool, server="raw", **arguments)
            assert not answer.result.get("isError"), answer.texts
            assert "as_of" not in str(answer.content)
            assert await window.status() == "connected"
            assert "idle_since" not in await window.entry()
            assert started(journal) == count
        window = await daemon.window()
        assert await window.says("reconnect_server", name="raw") == {
            "server": "raw",
            "status": "connected",
        }


async def test_what_needs_no_server_starts_none(journal: Journal) -> None:
    async with opened({"raw": raw(*journal.flags)}) as daemon:
        await daemon.learned()
        window = await daemon.window()
        await window.says("set_log_level", server="raw", level="debug")
        await window.says("set_roots", roots=[{"uri": "file:///somewhere"}])
        await window.says("get_logs", server="raw")
        await window.says("list_tasks", server="raw")
        assert await window.status() == "idle"
        assert started(journal) == 1
        assert await window.execute("now") == ["now"]
        level = await journal.wait_for_method("logging/setLevel")
        assert level["params"] == {"level": "debug"}


async def test_each_principal_has_to_learn_it(journal: Journal) -> None:
    async with opened({"raw": raw(*journal.flags)}) as daemon:
        await daemon.learned("ada")
        await daemon.learned("bob")
        assert await (await daemon.window("ada")).status() == "idle"
        assert started(journal) == 2


@pytest.mark.parametrize(
    ("start", "defaults", "status"),
    [
        ("eager", "auto", None),
        (None, "eager", None),
        ("auto", "eager", "idle"),
        (None, None, "idle"),
    ],
)
async def test_eager_servers_are_always_started(
    journal: Journal, start: str | None, defaults: str | None, status: str | None
) -> None:
    entry = raw(*journal.flags) | ({"start": start} if start else {})
    settings = {"defaults": {"start": defaults}} if defaults else {}
    async with opened({"raw": entry}, **settings) as daemon:
        first = await daemon.window()
        await first.execute("here")
        if status == "idle":
            await until(daemon.whole)
        second = await daemon.window()
        if status is None:
            await journal.wait_for(lambda entry: "started" in entry, 2)
            assert await second.status() != "idle"
        else:
            assert await second.status() == status


async def test_a_lazy_server_is_known_once_it_was_needed(journal: Journal) -> None:
    async with opened({"raw": raw(*journal.flags) | {"start": "lazy"}}) as daemon:
        first = await daemon.window()
        assert await first.status() == "not_connected"
        await first.execute("now")
        await until(daemon.whole)
        assert await (await daemon.window()).status() == "idle"


async def test_an_entry_that_differs_in_anything_that_decides_is_another_server(
    journal: Journal, tmp_path: Path
) -> None:
    entry = raw(*journal.flags)
    same = {"description": "the same", "connect_timeout_ms": 20_000}
    others: dict[str, Json] = {
        "args": {"args": [*entry["args"], "--prompts", "7"]},
        "env": {"env": {"WHO": "ada"}},
        "cwd": {"cwd": str(tmp_path)},
        "denied": {"denied_tools": ["echo"]},
        "roots": {"roots": ["file:///else"]},
    }
    async with opened({"raw": entry}) as daemon:
        await daemon.learned()
        window, manager = await daemon.window(), daemon.world.manager
        known = parse({"mcpServers": {"raw": entry | same}}, folder=Path("/"), environ={}).config
        manager.reload(known)
        assert await window.status() == "idle"
        for name, other in others.items():
            config = parse({"mcpServers": {"raw": entry | other}}, folder=Path("/"), environ={})
            manager.reload(config.config)
            assert await window.status() != "idle", name
        manager.reload(known)
        assert await window.status() == "idle"


async def test_a_change_that_its_start_brings_is_told(journal: Journal, tmp_path: Path) -> None:
    many = tmp_path / "many"
    entry = raw(*journal.flags, "--tools-in", many)
    async with opened({"raw": entry}) as daemon:
        await daemon.learned()
        window = await daemon.window()
        before = (await window.says("list_tools", detail="summary"))["tools"][0]["tools"]
        many.write_text(str(len(before) + 5))
        assert await window.execute("now") == ["now"]
        (event,) = await window.events("notification")
        assert event["data"]["method"] == "notifications/tools/list_changed"
        (group,) = (await window.says("list_tools", detail="summary"))["tools"]
        assert len(group["tools"]) == len(before) + 5
        assert "as_of" not in group
        later = await daemon.window()
        (group,) = (await later.says("list_tools", detail="summary"))["tools"]
        assert (len(group["tools"]), "as_of" in group) == (len(before) + 5, True)


async def test_lists_answer_while_the_server_starts(journal: Journal, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    async with opened({"raw": raw(*journal.flags, "--start-when", gate)}) as daemon:
        await daemon.learned()
        gate.unlink()
        window = await daemon.window()
        task = await window.call("execute_tool", server="raw", tool="echo", timeout_ms=0)
        assert await window.status() == "connecting"
        assert (await window.says("list_tools"))["tools"][0]["as_of"]
        gate.touch()
        said = await window.call("get_task_result", task_id=task.task_id)
        assert not said.result.get("isError")


async def test_progress_says_that_it_is_started(journal: Journal) -> None:
    async with opened({"raw": raw(*journal.flags)}) as daemon:
        await daemon.learned()
        window = await daemon.window()
        asked = {"server": "raw", "tool": "echo", "args": {"text": "now"}}
        params = {"name": "execute_tool", "arguments": asked, "_meta": {"progressToken": "p"}}
        exchange = window.client.request("tools/call", **params)
        answer = await exchange.answer()
        assert not answer["result"].get("isError")
        (progress,) = [m for m in exchange.messages if m.get("method") == "notifications/progress"]
        assert progress["params"]["message"] == "server 'raw' is starting"
        assert progress["params"]["progress"] > 0


async def test_one_that_no_longer_works_is_not_known_any_more(
    journal: Journal, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    command, args = raw()["command"], raw()["args"]
    program.write_text(f'#!/bin/sh\nexec {command} {" ".join(args)} "$@"\n')
    program.chmod(0o755)
    entry = {"command": str(program), "args": [*journal.flags]}
    async with opened({"raw": entry}) as daemon:
        await daemon.learned()
        program.unlink()
        window = await daemon.window()
        assert await window.status() == "idle"
        answer = await window.call("execute_tool", server="raw", tool="echo")
        assert answer.error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert await window.status() == "error"
        later = await daemon.window()
        while (status := await later.status()) == "connecting":
            await later.call("await_activity")
        assert status == "error"


async def test_a_crash_is_told_and_mended_as_ever(journal: Journal) -> None:
    entry = raw(*journal.flags) | {"restart": {"base_delay_ms": 10}}
    async with opened({"raw": entry}) as daemon:
        await daemon.learned()
        window = await daemon.window()
        await window.execute("now")
        said = await window.says("get_server_status", server="raw")
        os.kill(said["process"]["pid"], signal.SIGKILL)
        (event,) = await window.events("server_reconnected")
        assert event["data"]["type"] == "restart"
        assert await window.status() == "connected"


async def test_added_servers_are_connected_at_once(journal: Journal) -> None:
    async with opened({}) as daemon:
        window, other = await daemon.window(), await daemon.window()
        said = await window.says("add_server", name="raw", **raw(*journal.flags))
        assert said["status"] == "connected"
        await window.says("remove_server", name="raw")
        again = await window.says("add_server", name="raw", **raw(*journal.flags))
        assert (again["status"], again["tools"]) == ("connected", said["tools"])
        assert started(journal) >= 2
        assert await other.status() in {"idle", "connecting", "connected"}


async def test_a_restarted_daemon_knows_it_still(tmp_path: Path, journal: Journal) -> None:
    secret = "a very secret value"
    entry = raw(*journal.flags) | {"env": {"TOKEN": secret}}
    config = str(write_config(tmp_path, {"raw": entry}))

    def bridge(url: str) -> AbstractAsyncContextManager[Lines]:
        words = ("stdio", "--connect", url, "--state-dir", str(tmp_path))
        return open_pipes(tmp_path / "bridge.log", *words)

    with serve(tmp_path, "--config", config) as daemon:
        async with bridge(daemon.url) as lines:
            await lines.initialize()
            there = (await lines.call(1, "list_tools", detail="full")).json["tools"]
            kept = tmp_path / "catalogue"
            await until(lambda: [p for p in kept.glob("*.json") if '"prompts"' in p.read_text()])
    with serve(tmp_path, "--config", config) as daemon:
        async with bridge(daemon.url) as lines:
            await lines.initialize()
            (listed,) = (await lines.call(1, "list_servers")).json["servers"]
            assert listed["status"] == "idle"
            (group,) = (await lines.call(2, "list_tools", detail="full")).json["tools"]
            assert group.pop("as_of")
            assert [group] == there
            assert started(journal) == 1
            assert (await lines.execute("raw", "echo", {"text": "now"})).texts == ["now"]
            assert started(journal) == 2
    for path in kept.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert secret not in path.read_text()


async def test_so_does_the_next_process_on_standard_input_and_output(
    connect: Open, journal: Journal
) -> None:
    servers = {"raw": raw(*journal.flags)}
    async with connect(servers) as client:
        await client.connected("raw")
        await journal.wait_for_method("prompts/list")
        await client.sent()
    async with connect(servers) as client:
        (listed,) = (await client.says("list_servers"))["servers"]
        assert listed["status"] == "idle"
        assert (await client.execute("raw", "echo", {"text": "now"})).texts == ["now"]
    assert started(journal) == 2


async def test_a_program_that_nobody_uses_is_stopped_if_that_is_wanted(journal: Journal) -> None:
    entry = raw(*journal.flags) | {"idle_stop_ms": 500}
    async with opened({"raw": entry}) as daemon:
        window = await daemon.learned()
        (stopped,) = await window.events("process_stopped")
        assert stopped["data"]["reason"] == "idle"
        assert await window.status() == "idle"
        assert (await window.entry())["idle_since"]
        assert (await window.says("list_tools"))["tools"][0]["as_of"]
        assert await window.execute("again") == ["again"]
        await window.says("subscribe_resource", server="raw", uri="raw://text")
        await trio.sleep(1)
        assert await window.status() == "connected"
        await window.says("unsubscribe_resource", server="raw", uri="raw://text")
        while await window.status() != "idle":
            await window.call("await_activity")
        assert started(journal) == 2
        said = await window.says("await_activity", last_event_id="0")
        kinds = {event["type"] for group in said["events"] for event in group["events"]}
        assert "server_disconnected" not in kinds
        assert "process_crashed" not in kinds


async def test_many_sessions_start_only_what_each_of_them_needs(tmp_path: Path) -> None:
    journals = {f"s{n}": Journal(tmp_path / f"{n}.jsonl") for n in range(3)}

    def starts() -> int:
        return sum(map(started, journals.values()))

    async with opened({name: raw(*each.flags) for name, each in journals.items()}) as daemon:
        await daemon.learned("local", *journals)
        assert starts() == 3
        windows = [await daemon.window() for _ in range(20)]
        for window in windows:
            assert len((await window.says("list_tools"))["tools"]) == 3
        assert starts() == 3
        for window, server in zip(windows, [*journals] * 2, strict=False):
            assert await window.execute("now", server) == ["now"]
        assert starts() == 3 + 6
        children = daemon.world.manager._shared.children
        assert children == 3 + 6
