"""One program for the clients of a real daemon, as they see it: over HTTP, each by itself."""

from __future__ import annotations

import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import trio

import warm
from emceepee_client import GUARD, is_running, write_config
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession, body_of
from fake_backends import Journal, raw, until
from served import Daemon, serve

pytestmark = pytest.mark.once


def says(client: RemoteSession, tool: str, **arguments: Any) -> Any:
    return json.loads(client.call(tool, arguments)["content"][0]["text"])


def echo(client: RemoteSession, text: str) -> str:
    asked = {"server": "it", "tool": "echo", "args": {"text": text}}
    return str(client.call("execute_tool", asked)["content"][0]["text"])


def page(daemon: RemoteDaemon, path: str) -> str:
    with daemon.request("GET", path) as response:
        assert response.status == 200
        return body_of(response).decode()


def look(daemon: RemoteDaemon, path: str) -> Any:
    return json.loads(page(daemon, path))


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
            (program,) = look(daemon, "/status")["programs"]
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


async def test_whoever_runs_it_sees_who_shares_what_and_all_that_it_says(tmp_path: Path) -> None:
    entry = raw() | {"scope": "principal"}
    config = write_config(tmp_path, {"it": entry})

    def look_at(served: Daemon) -> None:
        daemon = RemoteDaemon.find(served.url, tmp_path)
        with (
            RemoteSession.connected(daemon, "one") as one,
            RemoteSession.connected(daemon, "two") as two,
        ):
            assert [echo(client, "x") for client in (one, two)] == ["x", "x"]
            args = {"line": "of whom?", "n": 1}
            one.call("execute_tool", {"server": "it", "tool": "stderr", "args": args})

            # No session is shown what may be of another, and whoever runs the daemon is.
            while not (said := look(daemon, "/logs?server=it")["logs"]):
                time.sleep(0.01)
            assert [(line["session"], line["data"]) for line in said] == [(None, "of whom? 0")]
            for client in (one, two):
                assert says(client, "get_logs")["logs"] == []
                assert says(client, "get_server_status", server="it")["stderr_tail"] == []
            assert look(daemon, "/api/servers/it/logs")["logs"] == said
            command = [*warm.command("emceepee_trio"), "logs", "it", "--url", served.url]
            run = subprocess.run(
                [*command, "--state-dir", str(tmp_path)],
                capture_output=True,
                text=True,
                check=True,
                timeout=GUARD,
            )
            assert run.stdout.endswith(" it stderr info: of whom? 0 (shared)\n")

            # Who shares it, and the one program.
            pid = says(one, "get_server_status", server="it")["process"]["pid"]
            of_it = look(daemon, "/api/servers/it")
            assert [each["client"] for each in of_it["sessions"]] == ["one", "two"]
            assert [each["shared_with"] for each in of_it["sessions"]] == [["two"], ["one"]]
            assert {each["process"]["pid"] for each in of_it["sessions"]} == {pid}
            (taken,) = of_it["programs"]
            assert (taken["programs"], len(taken["sessions"])) == (1, 2)
            now = look(daemon, "/api/now")
            assert [(each["pid"], each["shared_with"]) for each in now["children"]] == [
                (pid, ["two"])
            ]
            browser = {"Accept": "text/html"}
            for path in ("/", "/servers/it"):
                with daemon.request("GET", path, browser) as response:
                    assert "shared with" in body_of(response).decode()

            # The connection is in the timeline of each, and nothing of the other's calls.
            for session in look(daemon, "/api/sessions")["sessions"]:
                rows = look(daemon, f"/api/sessions/{session['name']}/timeline")["rows"]
                links = [row for row in rows if row["kind"] == "connection"]
                assert [(row["name"], row["outcome"]) for row in links] == [
                    (f"program {pid}", "under way")
                ]
                calls = [row["name"] for row in rows if row["kind"] == "call"]
                mine = ["echo", "stderr"] if session["client"] == "one" else ["echo"]
                assert sorted(calls) == mine
            metrics = page(daemon, "/metrics")
            assert 'emceepee_leases{server="it"} 2.0' in metrics
            assert 'emceepee_shared_connections{server="it"} 1.0' in metrics
            assert 'emceepee_children{server="it"} 1.0' in metrics

    with trio.fail_after(GUARD), serve(tmp_path, "--config", str(config)) as served:
        await trio.to_thread.run_sync(look_at, served)
