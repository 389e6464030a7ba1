"""The service under a systemd that runs: installed, reloaded, killed, made anew, removed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

from brood import open_brood
from fake_backends import raw
from http_child import free_port
from user_systemd import GUARD, NoSystemd, UserSystemd, user_systemd

pytestmark = [pytest.mark.once, pytest.mark.cold]

META = "io.modelcontextprotocol/"
STAMP = {
    f"{META}protocolVersion": "2026-07-28",
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": {"name": "test", "version": "0"},
}


@attrs.frozen
class Machine:
    """A home whose user's systemd runs."""

    home: Path
    port: int
    systemd: UserSystemd

    def emceepee(self, *words: str) -> str:
        return self.systemd.run(str(Path(sys.executable).with_name("emceepee")), *words)

    def shown(self, key: str) -> str:
        return self.systemd.run("systemctl", "--user", "show", "-P", key, "emceepee").strip()

    def configure(self, **servers: Any) -> None:
        path = self.home / ".config/emceepee/config.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": servers}))

    def call(self, server: str) -> str:
        """What its `echo` says, to a client of the daemon."""
        token = (self.home / ".local/state/emceepee/token").read_text().strip()
        params = {
            "name": "execute_tool",
            "arguments": {"server": server, "tool": "echo", "args": {"text": "hello"}},
            "_meta": STAMP,
        }
        answer = httpx.post(
            f"http://127.0.0.1:{self.port}/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
            headers={
                "authorization": f"Bearer {token}",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": "2026-07-28",
                "mcp-method": "tools/call",
                "mcp-name": "execute_tool",
            },
            timeout=GUARD,
        )
        assert answer.status_code == 200, answer.text
        return answer.text


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    home, port = tmp_path / "home", trio.run(free_port)
    home.mkdir()
    kept = {"HOME": str(home), "PORT": str(port), "XDG_STATE_HOME": str(home / ".local/state")}
    try:
        with user_systemd(tmp_path, kept) as systemd:
            yield Machine(home, port, systemd)
    except NoSystemd as error:
        pytest.skip(str(error))


def test_systemd_keeps_it_running_reloads_it_and_leaves_nothing_of_it(machine: Machine) -> None:
    with open_brood() as brood:
        machine.configure(one=raw(*brood.flags))
        said = machine.emceepee("install-service", "--user")
        assert "done: systemctl --user enable --now emceepee.service" in said
        # It has said that it is ready, or systemctl would still wait.
        assert machine.shown("ActiveState") == "active"
        assert "hello" in machine.call("one")
        _until(brood.is_hidden)

        machine.configure(one=raw(*brood.flags), two=raw())
        before = machine.shown("MainPID")
        machine.systemd.run("systemctl", "--user", "reload", "emceepee")
        _until(lambda: "hello" in machine.call("two"))
        assert machine.shown("MainPID") == before

        machine.systemd.run("kill", "-KILL", before)
        _until(lambda: machine.shown("NRestarts") == "1" and machine.shown("SubState") == "running")
        assert not brood.alive()
        assert "hello" in machine.call("one")

        machine.emceepee("install-service", "--user", "--remove")
        assert not brood.alive()
        with pytest.raises(httpx.ConnectError):
            machine.call("one")
        assert machine.shown("LoadState") == "not-found"


def _until(seen: Callable[[], object]) -> None:
    """Nothing tells us what becomes of processes of others."""
    while not seen():
        time.sleep(0.02)
