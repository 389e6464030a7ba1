"""A daemon that may open few files: it says so itself, and clients can still connect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

from asgi_client import BOTH, HELLO, LATEST, request
from emceepee_client import COMMAND, GUARD, write_config
from emceepee_trio.backend.children import files
from fake_backends import raw
from served import serve

FEW, SOFT = 144, 150
CHILDREN = (FEW // 2 - files.OURS) // files.EACH


def limited(how: str) -> tuple[str, ...]:
    return ("sh", "-c", f'ulimit {how}; exec "$@"', "sh", *COMMAND)


class Asking:
    """A client of the handshake era, as plain as can be."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client, self._url = client, url
        self._headers = {"accept": BOTH}

    async def join(self) -> None:
        hello = request(1, "initialize", protocolVersion=LATEST, **HELLO)
        answer = await self._client.post(self._url, json=hello, headers=self._headers)
        self._headers["mcp-session-id"] = answer.headers["mcp-session-id"]

    async def call(self, tool: str, **arguments: Any) -> Any:
        asked = request(2, "tools/call", name=tool, arguments=arguments)
        answer = await self._client.post(self._url, json=asked, headers=self._headers)
        said = json.loads(answer.text[answer.text.rindex('{"jsonrpc"') :])
        return json.loads(said["result"]["content"][0]["text"])

    async def connected(self) -> list[Any]:
        """The servers, once none is connecting any more."""
        while True:
            servers: list[Any] = (await self.call("list_servers"))["servers"]
            if all(server["status"] != "connecting" for server in servers):
                return servers
            await trio.sleep(0.1)


async def test_more_programs_than_files_are_refused_by_name(tmp_path: Path) -> None:
    config = write_config(tmp_path, {f"s{n}": raw() for n in range(CHILDREN + 3)})
    command = limited(f"-n {FEW}")
    with (
        trio.fail_after(GUARD),
        serve(tmp_path, "--config", str(config), "--no-auth", command=command) as daemon,
    ):
        async with httpx.AsyncClient(trust_env=False, timeout=GUARD) as client:
            asking = Asking(client, daemon.url)
            await asking.join()
            servers = await asking.connected()
            errors = [s["last_error"] for s in servers if s["status"] != "connected"]
            assert len(errors) == 3
            assert all("limit of open files" in error for error in errors)
        async with httpx.AsyncClient(trust_env=False, timeout=GUARD) as another:
            health = daemon.url.removesuffix("/mcp") + "/healthz"
            assert (await another.get(health)).status_code == 200


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="only Linux shows limits")
async def test_the_daemon_raises_its_limit_and_programs_keep_theirs(tmp_path: Path) -> None:
    def limits(pid: int) -> list[str]:
        lines = Path(f"/proc/{pid}/limits").read_text("utf-8").splitlines()
        return next(line.split()[3:5] for line in lines if line.startswith("Max open files"))

    config = write_config(tmp_path, {"raw": raw()})
    command = limited(f"-S -n {SOFT}")
    with (
        trio.fail_after(GUARD),
        serve(tmp_path, "--config", str(config), "--no-auth", command=command) as daemon,
    ):
        async with httpx.AsyncClient(trust_env=False, timeout=GUARD) as client:
            asking = Asking(client, daemon.url)
            await asking.join()
            await asking.connected()
            status = await asking.call("get_server_status", server="raw")
        soft, hard = limits(daemon.pid)
        assert soft == hard != str(SOFT)
        assert limits(status["process"]["pid"]) == [str(SOFT), hard]
