"""Servers that are added, removed, connected anew and reloaded, all at the same time."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp import Client

from emceepee_client import GUARD, Answer, Emceepee, Json, Open, is_running, write_config
from fake_backends import Journal, raw, until
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from served import serve
from telling import STARTED, data, drain, kinds, life

pytestmark = QUIET

REMOVED = ["process_stopped", "server_disconnected", "server_removed"]


async def echo(emceepee: Emceepee, server: str) -> None:
    arguments = {"text": "fine"}
    answer = await emceepee.execute(server, "echo", arguments)
    assert answer.text in {"fine", json.dumps(arguments)}


async def test_one_that_is_removed_and_added_with_another_url(connect: Open) -> None:
    """In the middle of a call: it fails, and nobody asks the other server for its answer."""
    async with (
        open_http_server(HttpServer()) as first,
        open_http_server(HttpServer()) as second,
        connect() as emceepee,
    ):
        await emceepee.says("add_server", name="web", url=first.url)
        task = await emceepee.start_task("web", "never")
        await first.wait_for("tools/call")
        assert await emceepee.says("remove_server", name="web") == {"removed": "web"}
        await emceepee.says("add_server", name="web", url=second.url)
        await echo(emceepee, "web")
        assert (await emceepee.task_over(task))["status"] == "failed"
        error = await emceepee.fails("get_task_result", task_id=task)
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert error["details"] == {"may_have_run": True}
        await drain(emceepee)
        # Who adds a server learns that from the answer.
        gone = ["server_disconnected", "server_removed"]
        assert life(emceepee, "web") == ["server_connected", *gone, "server_connected"]
        (lost,) = data(emceepee, "web", "server_disconnected")
        assert lost["wasIntentional"]
        (removed,) = data(emceepee, "web", "server_removed")
        assert removed["target"] == first.url
        assert not first.sessions
        assert [r.message["params"]["name"] for r in second.of("tools/call")] == ["echo"]


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_reconnects_at_the_same_time_are_one(connect: Open, kind: str) -> None:
    """Each works when it returns."""
    go = trio.Event()

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "initialize" and len(server.of("initialize")) > 1:
            await go.wait()
        return False

    server = HttpServer(spoil=spoil)
    async with open_http_server(server):
        entry = raw() if kind == "stdio" else {"url": server.url}
        async with connect({"it": entry}) as emceepee:
            await emceepee.connected("it")
            pid = await emceepee.pid("it") if kind == "stdio" else None
            answers: list[Answer] = []

            async def reconnect() -> None:
                answers.append(await emceepee.call("reconnect_server", name="it"))

            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(reconnect)
                if kind == "http":
                    await server.wait_for("initialize", 2)
                    # Made before the old one is broken.
                    await echo(emceepee, "it")
                    await emceepee.sent()
                go.set()
            assert [answer.json["status"] for answer in answers] == ["connected"] * 3
            await echo(emceepee, "it")
            await emceepee.event("server_reconnected", name="it")
            await drain(emceepee)
            told = life(emceepee, "it")
            if kind == "http":
                assert len(server.of("initialize")) == 2
                assert told == ["server_disconnected", "server_reconnected"]
                assert len(server.sessions) == 1
            else:
                assert pid is not None
                assert not is_running(pid)
                again = ["process_stopped", "server_disconnected", "process_started"]
                assert told == [*again, "server_reconnected"]
        assert not server.sessions


async def test_one_that_is_added_while_it_is_removed(connect: Open, journal: Journal) -> None:
    """The old one does not want to go; the new one is another process, and stays."""
    async with connect() as emceepee:
        await emceepee.says("add_server", name="it", **raw("--stubborn", *journal.flags))
        old = await emceepee.pid("it")
        answers: list[Answer] = []

        async def remove() -> None:
            answers.append(await emceepee.call("remove_server", name="it"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(remove)
            await journal.wait_for(lambda entry: "eof" in entry)  # it is being ended
            assert is_running(old)
            added = await emceepee.says("add_server", name="it", **raw())
        assert added["status"] == "connected"
        assert answers[0].json == {"removed": "it"}
        assert not is_running(old)
        await echo(emceepee, "it")
        await drain(emceepee)
        told = kinds(emceepee, "it")
        assert sorted(told) == sorted([*STARTED, *REMOVED, *STARTED])
        names = [s["name"] for s in (await emceepee.says("list_servers"))["servers"]]
        assert names.count("it") == 1
        # Its successor may have made it be told as removed before it had ended.
        stopped, disconnected = (told.index(kind) for kind in REMOVED[:2])
        assert stopped < disconnected


# -- emceepee serve ------------------------------------------------------------------------------


@asynccontextmanager
async def open_served(
    folder: Path, servers: Mapping[str, Json]
) -> AsyncGenerator[tuple[Emceepee, int]]:
    """A client of a daemon that is not its child, and the pid of that."""
    config = write_config(folder, servers)
    with trio.fail_after(GUARD), serve(folder, "--config", str(config), "--no-auth") as daemon:
        async with Client(daemon.url, mode="legacy") as client:
            yield Emceepee(client, "handshake", folder / "stderr"), daemon.pid


async def pids(emceepee: Emceepee, servers: Mapping[str, Any]) -> dict[str, int]:
    return {name: (await emceepee.status(name))["process"]["pid"] for name in servers}


async def test_of_five_servers_a_reload_touches_the_one_that_has_changed(tmp_path: Path) -> None:
    """Calls to the other ones do not even notice it."""
    journal, file = Journal(tmp_path / "journal"), tmp_path / "file"
    servers = {f"s{n}": raw() for n in range(4)} | {"busy": raw(*journal.flags)}
    async with open_served(tmp_path, servers) as (emceepee, daemon):
        await emceepee.connected(*servers)
        before = await pids(emceepee, servers)
        task = await emceepee.start_task("busy", "slow", {"file": str(file)})
        await journal.wait_for_marker("slow started")
        write_config(tmp_path, servers | {"s2": raw("--tools", 5)})
        os.kill(daemon, signal.SIGHUP)
        await emceepee.event("server_connected", name="s2")
        after = await pids(emceepee, servers)
        assert {name for name in servers if before[name] != after[name]} == {"s2"}
        assert not is_running(before["s2"])
        file.touch()
        result = await emceepee.call("get_task_result", task_id=task)
        assert result.text == "the file is there"
        await drain(emceepee)
        assert sorted(life(emceepee, "s2")) == sorted([*REMOVED, "server_added", *STARTED])
        for name in servers.keys() - {"s2"}:
            assert life(emceepee, name) == []
    with trio.fail_after(GUARD):
        await until(lambda: not any(map(is_running, after.values())))
