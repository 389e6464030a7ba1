"""The daemon under a foreign ASGI server: hypercorn itself, and servers that do it wrong."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio
from hypercorn.config import Config as HypercornConfig
from hypercorn.trio.run import worker_serve
from hypercorn.utils import wrap_app

from emceepee_trio import asgi, logs
from emceepee_trio.asgi import Asgi
from emceepee_trio.serving.asgi import Message

GUARD = 60


@attrs.define(eq=False)
class Server:
    """As much of an ASGI server as a test needs."""

    app: Asgi = attrs.field(factory=Asgi)

    async def get(self, path: str) -> tuple[int, Any]:
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            await trio.sleep_forever()
            raise AssertionError

        scope = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "method": "GET",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
            "server": None,
        }
        await self.app(scope, receive, send)
        return sent[0]["status"], json.loads(b"".join(m.get("body", b"") for m in sent))

    async def startup(self) -> Message:
        """Only the first half of a lifespan; the answer to it."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "lifespan.startup"}

        await self.app({"type": "lifespan"}, receive, send)
        (message,) = sent
        return message


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One who has no configuration yet; where it would be."""
    monkeypatch.setattr(logs, "configure", lambda *_: None)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.setenv("EMCEEPEE_TOKEN", "t0ken")
    (tmp_path / "emceepee").mkdir()
    return tmp_path / "emceepee" / "config.json"


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/readyz", "/status", "/logs"])
async def test_without_a_lifespan_everything_says_why_it_cannot_be(path: str) -> None:
    status, said = await Server().get(path)
    assert status == 503
    assert "no ASGI lifespan is running" in said["error"]["message"]


async def test_without_a_lifespan_a_websocket_is_closed() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    await Asgi()({"type": "websocket"}, receive, send)
    assert sent == [{"type": "websocket.close"}]


def test_under_asyncio_it_says_what_to_do() -> None:
    async def use(server: Server) -> None:
        assert await server.startup() == {
            "type": "lifespan.startup.failed",
            "message": asgi.NO_TRIO,
        }
        status, said = await server.get("/healthz")
        assert (status, said["error"]["message"]) == (503, asgi.NO_TRIO)

    asyncio.run(use(Server()))


async def test_a_configuration_with_mistakes_fails_the_start(user: Path) -> None:
    await trio.Path(user).write_text('{"limits": {"calls": "x"}, "policy": {"spawn": "y"}}')
    server = Server()
    message = await server.startup()
    assert message["type"] == "lifespan.startup.failed"
    assert len(message["message"].splitlines()) == 2
    assert (await server.get("/healthz"))[0] == 503


async def test_after_a_crash_everything_says_that() -> None:
    server = Server()
    messages = iter([{"type": "lifespan.startup"}])

    async def receive() -> Message:
        for message in messages:
            return message
        raise ValueError("a bug")

    async def send(message: Message) -> None:
        assert message == {"type": "lifespan.startup.complete"}
        assert (await server.get("/healthz"))[0] == 200

    with pytest.RaisesGroup(ValueError, flatten_subgroups=True):
        await server.app({"type": "lifespan"}, receive, send)
    status, said = await server.get("/healthz")
    assert status == 503
    assert "has crashed" in said["error"]["message"]


async def test_under_hypercorn_it_serves_until_the_lifespan_ends() -> None:
    app = Asgi()
    config = HypercornConfig()
    config.errorlog = None
    config.bind = ["127.0.0.1:0"]
    stop = trio.Event()
    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery:
            # Hypercorn calls what it is handed.
            async def serve(*, task_status: trio.TaskStatus[list[str]]) -> None:  # noqa: ASYNC128 - see above
                await worker_serve(
                    wrap_app(app, config.wsgi_max_body_size, "asgi"),  # type: ignore[arg-type]  # a dict, to ASGI as well
                    config,
                    shutdown_trigger=stop.wait,
                    task_status=task_status,
                )

            (url,) = await nursery.start(serve)
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=GUARD) as client:
                assert (await client.get("/healthz")).status_code == 200
                assert (await client.get("/readyz")).status_code == 200
                assert (await client.get("/status")).status_code == 401
                token = {"authorization": "Bearer t0ken"}
                assert (await client.get("/status", headers=token)).json()["sessions"] == []
                evil = token | {"host": "evil.example"}
                assert (await client.get("/status", headers=evil)).status_code == 403
                asked = token | {"accept": "application/json, text/event-stream"}
                add = {"name": "add_server", "arguments": {"name": "x", "command": "true"}}
                opened = await client.post("/mcp", json=INITIALIZE, headers=asked)
                asked["mcp-session-id"] = opened.headers["mcp-session-id"]
                call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": add}
                assert (
                    "TOOL_ERR_DENIED" in (await client.post("/mcp", json=call, headers=asked)).text
                )
            stop.set()
    server = Server(app)
    status, said = await server.get("/healthz")
    assert (status, said["error"]["message"]) == (503, "the daemon is shutting down")


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


def test_the_command_of_the_documentation_works() -> None:
    command = [sys.executable, "-m", "hypercorn", "-k", "trio", "-w", "0"]
    with socket.create_server(("127.0.0.1", 0)) as given:
        fd = given.fileno()
        process = subprocess.Popen(
            [*command, "--bind", f"fd://{fd}", "emceepee_trio.asgi:app"],
            env=dict(os.environ),
            pass_fds=[fd],
            stderr=subprocess.DEVNULL,
        )
        try:
            # It waits in the backlog until somebody serves it.
            url = f"http://127.0.0.1:{given.getsockname()[1]}/readyz"
            answer = httpx.get(url, trust_env=False, timeout=GUARD)
            assert answer.json() == {"status": "ready"}
        finally:
            process.kill()
            process.wait()
