"""One program for the clients of a real daemon, as they see it: over HTTP, each by itself."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import GUARD, is_running, write_config
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession, body_of
from fake_backends import Journal, raw, until
from served import serve

pytestmark = pytest.mark.once


def says(client: RemoteSession, tool: str, **arguments: Any) -> Any:
    return json.loads(client.call(tool, arguments)["content"][0]["text"])


def echo(client: RemoteSession, text: str) -> str:
    asked = {"server": "it", "tool": "echo", "args": {"text": text}}
    return str(client.call("execute_tool", asked)["content"][0]["text"])


def status(daemon: RemoteDaemon) -> Any:
    with daemon.request("GET", "/status") as response:
        return json.loads(body_of(response))


async def test_clients_of_one_principal_share_a_program_until_the_last_is_gone(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal")
    entry = raw(*journal.flags) | {"scope": "principal", "linger_ms": 200}
    config = write_config(tmp_path, {"it": entry})

    def use(daemon: RemoteDaemon) -> int:
        with (
            RemoteSession.connected(daemon, "one") as one,
            RemoteSession.connected(daemon, "two") as two,
            ThreadPoolExecutor(2) as pool,
        ):

            def calls(client: RemoteSession, name: str) -> bool:
                texts = [f"{name}-{n}" for n in range(20)]
                return [echo(client, text) for text in texts] == texts

            assert all(pool.map(calls, (one, two), ("one", "two")))
            pids = {says(c, "get_server_status", server="it")["process"]["pid"] for c in (one, two)}
            (listed,) = says(one, "list_servers")["servers"]
            assert listed["shared_with"] == ["two"]
            (pid,) = pids
            (program,) = status(daemon)["programs"]
            assert program.pop("resident_bytes") > 1_000_000
            assert len(program.pop("sessions")) == 2
            assert program == {
                "server": "it",
                "principal": "token",
                "scope": "principal",
                "programs": 1,
                "processes": 1,
            }
            assert is_running(pid)
            return int(pid)

    with trio.fail_after(GUARD), serve(tmp_path, "--config", str(config)) as served:
        pid = await trio.to_thread.run_sync(use, RemoteDaemon.find(served.url, tmp_path))
        await until(lambda: not is_running(pid))
    assert len([entry for entry in journal.entries() if "started" in entry]) == 1
