"""The daemon inside of a program of somebody else's, as the documentation shows it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

import emceepee_trio
from emceepee_trio import Config, Server, open_app

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
