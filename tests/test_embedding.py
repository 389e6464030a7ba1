"""The daemon inside of a program of somebody else's, as the documentation shows it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

import emceepee_trio
from emceepee_trio import Config, Server, ServerAuth, open_app
from http_server import HttpServer, open_http_server

GUARD = 60
HERE = Path(__file__).parent
ACCEPT = {"accept": "application/json, text/event-stream"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "0"},
    },
}


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


def test_what_is_offered_is_there_and_nothing_else() -> None:
    assert {name: getattr(emceepee_trio, name) for name in emceepee_trio.__all__} == {
        "Config": Config,
        "ServerAuth": ServerAuth,
        "Server": Server,
        "open_app": open_app,
    }
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        emceepee_trio.other  # noqa: B018 - to ask for it is the test


async def opened(client: httpx.AsyncClient, token: str) -> dict[str, str]:
    headers = {**ACCEPT, "authorization": f"Bearer {token}"}
    answer = await client.post("/mcp", json=INITIALIZE, headers=headers)
    assert answer.status_code == 200, answer.text
    return headers | {"mcp-session-id": answer.headers["mcp-session-id"]}


async def test_each_holder_of_a_token_is_somebody_else() -> None:
    tokens = {"ada": "one", "bob": "two"}
    with trio.fail_after(GUARD):
        async with open_app(Config(), credentials=tokens) as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                assert (await http.post("/mcp", json=INITIALIZE)).status_code == 401
                ada, bob = await opened(http, "one"), await opened(http, "two")
                stolen = bob | {"mcp-session-id": ada["mcp-session-id"]}
                for headers, status in ((ada, 200), (bob, 200), (stolen, 404)):
                    answer = await http.post("/mcp", json=call("list_servers"), headers=headers)
                    assert answer.status_code == status
                # A program of ours would run with the rights of the program that has us inside.
                add = call("add_server", name="x", command="true")
                answer = await http.post("/mcp", json=add, headers=ada)
                assert "TOOL_ERR_DENIED" in answer.text


async def test_without_credentials_whoever_reaches_it_may_call_it() -> None:
    with trio.fail_after(GUARD):
        async with open_app(credentials=None) as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                assert (await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)).status_code == 200


@attrs.frozen
class Known:
    """What this program has of one of its users."""

    token: str

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    async def refused(self, shown: Mapping[str, str]) -> bool:
        return False


async def test_servers_may_be_shown_who_it_is_that_calls() -> None:
    def auth_for(server: Server, principal: str) -> ServerAuth | None:
        return Known(f"{principal} at {server.name}") if server.name == "theirs" else None

    async with open_http_server(HttpServer()) as theirs, open_http_server(HttpServer()) as ours:
        config = Config(servers=(Server("theirs", url=theirs.url), Server("ours", url=ours.url)))
        with trio.fail_after(GUARD):
            async with open_app(
                config, credentials={"ada": "1", "bob": "2"}, auth_for=auth_for
            ) as app:
                transport = httpx.ASGITransport(app)
                base_url = "http://localhost"
                async with httpx.AsyncClient(transport=transport, base_url=base_url) as http:
                    for token in ("1", "2"):
                        headers = await opened(http, token)
                        for server in ("theirs", "ours"):
                            echo = call("execute_tool", server=server, tool="echo")
                            answer = await http.post("/mcp", json=echo, headers=headers)
                            assert "x-vendor" in answer.text, answer.text
        called = [request.headers["authorization"] for request in theirs.of("tools/call")]
        assert called == ["Bearer ada at theirs", "Bearer bob at theirs"]
        assert not any("authorization" in request.headers for request in ours.requests)


def test_it_is_a_part_of_a_quart_as_the_documentation_shows(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        fd, port = given.fileno(), given.getsockname()[1]
        command = [sys.executable, "-m", "hypercorn", "--worker-class", "trio", "--workers", "0"]
        process = subprocess.Popen(
            [*command, "--bind", f"fd://{fd}", "api:app"],
            cwd=HERE / "typing",
            env=os.environ | {"ADAS_TOKEN": "t0ken", "PYTHONDONTWRITEBYTECODE": "1"},
            pass_fds=[fd],
        )
        try:
            url = f"http://127.0.0.1:{port}"
            with httpx.Client(base_url=url, trust_env=False, timeout=GUARD) as http:
                assert http.get("/").text == "a page of your own"
                assert http.get("/emceepee/healthz").json() == {"status": "ok"}
                assert http.get("/emceepee/status").status_code == 401
                asked = {**ACCEPT, "authorization": "Bearer t0ken"}
                answer = http.post("/emceepee/mcp", json=INITIALIZE, headers=asked)
                asked["mcp-session-id"] = answer.headers["mcp-session-id"]
                echo = call("execute_tool", server="demo", tool="echo", args={"message": "hello"})
                said = http.post("/emceepee/mcp", json=echo, headers=asked).text
                assert "hello" in said
        finally:
            process.terminate()
            process.wait(GUARD)
