from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
import trio

from emceepee_trio.config import Config, Http, Server
from emceepee_trio.serving.asgi import Receive, Scope, Send
from emceepee_trio.serving.binds import Bind, Unix
from emceepee_trio.session.buffers import Buffers
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from emceepee_trio.web.app import App, pages
from emceepee_trio.web.metrics.scrape import Metrics
from emceepee_trio.web.security import Security, Tokens
from emceepee_trio.web.wire import read_body, send_bytes, send_event
from fake_backends import raw, until
from raw_http import ANY_PORT, Answer, Served, serving

GUARD = 60
TOKENS = Tokens.of([("ada", "s3cret"), ("token", "minted")])
ADA = "\nAuthorization: Bearer s3cret"
OPERATOR = "\nAuthorization: Bearer minted"


@attrs.define(eq=False)
class Endpoint:
    """In place of the MCP endpoint: remembers what reached it."""

    seen: list[tuple[Scope, str, bytes]] = attrs.field(factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send, principal: str) -> None:
        body = await read_body(receive, 1000)
        self.seen.append((scope, principal, body))
        if body == b"crash":
            raise ValueError("a secret")
        if body == b"crash late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send_event(send, b"half")
            raise ValueError("a secret")
        await send_bytes(send, 200, b"mcp", [(b"mcp-session-id", b"1")])


@attrs.define(eq=False)
class World:
    served: Served
    endpoint: Endpoint
    manager: SessionManager
    ready: bool = True

    async def ask(self, line: str, more: str = "", body: str = "", host: str = "") -> Answer:
        host = host or f"127.0.0.1:{self.served.port}"
        length = f"\nContent-Length: {len(body)}" if body else ""
        return await self.served.ask(f"{line} HTTP/1.1\nHost: {host}{length}{more}", body)


@asynccontextmanager
async def open_app(
    *binds: Bind, tokens: Tokens | None = TOKENS, servers: Sequence[Server] = (), **http: Any
) -> AsyncGenerator[World]:
    endpoint = Endpoint()
    config = Config(http=Http(**http), servers=tuple(servers))
    with trio.fail_after(GUARD):
        async with open_sessions(config) as manager:
            metrics = Metrics(manager)
            quart = pages(manager, lambda: {"version": "1"}, lambda: world.ready, metrics)
            app = App(Security.of(config.http, tokens), endpoint, quart)
            async with serving(app, *binds) as served:
                world = World(served, endpoint, manager)
                yield world


def error(answer: Answer) -> str:
    """What a refusal says; every one is a JSON-RPC error."""
    assert answer.headers["content-type"] == "application/json"
    said = json.loads(answer.body)
    assert (said["jsonrpc"], said["id"]) == ("2.0", None)
    assert isinstance(said["error"]["code"], int)
    return str(said["error"]["message"])


async def test_a_rebinding_attack_is_refused_before_anything_else() -> None:
    async with open_app(tokens=None) as world:
        evil = f"evil.example:{world.served.port}"
        for more in ("", f"\nOrigin: http://{evil}"):
            answer = await world.ask("POST /mcp", more, "{}", host=evil)
            assert answer.status == 403
            assert "http.allowed_hosts" in error(answer)
        assert world.endpoint.seen == []


async def test_a_page_from_elsewhere_is_refused_and_cannot_read_why() -> None:
    async with open_app(tokens=None) as world:
        for origin in ("http://evil.example", "null"):
            for line in ("POST /mcp", "GET /mcp", "OPTIONS /mcp", "GET /healthz"):
                answer = await world.ask(line, f"\nOrigin: {origin}")
                assert answer.status == 403
                assert "http.allowed_origins" in error(answer)
                assert not any(name.startswith("access-control") for name in answer.headers)
        assert world.endpoint.seen == []


async def test_what_is_said_twice_is_refused() -> None:
    async with open_app() as world:
        for more in (ADA + ADA, "\nOrigin: http://localhost\nOrigin: http://localhost"):
            assert (await world.ask("POST /mcp", more)).status == 400
        assert world.endpoint.seen == []


async def test_a_page_asks_first_and_needs_no_token_for_that() -> None:
    async with open_app(allowed_origins=("https://app.example",)) as world:
        asked = (
            "\nOrigin: https://app.example\nAccess-Control-Request-Method: POST"
            "\nAccess-Control-Request-Headers: authorization,mcp-method"
        )
        answer = await world.ask("OPTIONS /mcp", asked)
        assert (answer.status, answer.body) == (204, b"")
        assert "content-length" not in answer.headers
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "mcp-method" in answer.headers["access-control-allow-headers"].split(", ")
        assert world.endpoint.seen == []


async def test_a_page_can_read_answers_and_refusals() -> None:
    async with open_app(allowed_origins=("https://app.example",)) as world:
        origin = "\nOrigin: https://app.example"
        for more, status in ((origin, 401), (origin + ADA, 200)):
            answer = await world.ask("POST /mcp", more, "{}")
            assert answer.status == status
            assert answer.headers["access-control-allow-origin"] == "https://app.example"
            assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
        assert answer.headers["mcp-session-id"] == "1"
        plain = await world.ask("POST /mcp", ADA, "{}")
        assert "access-control-allow-origin" not in plain.headers


@pytest.mark.parametrize("path", ["/mcp", "/status", "/", "/servers/x/mcp", "/nothing"])
async def test_everything_needs_a_token(path: str) -> None:
    async with open_app() as world:
        for more in ("", "\nAuthorization: Bearer wrong", "\nAuthorization: Basic s3cret"):
            for method in ("GET", "POST", "DELETE", "PUT", "TRACE"):
                answer = await world.ask(f"{method} {path}", more)
                assert answer.status == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert "token" in error(answer)
        assert world.endpoint.seen == []


async def test_a_client_does_not_begin_with_oauth() -> None:
    async with open_app() as world:
        answer = await world.ask("GET /.well-known/oauth-protected-resource/mcp")
        assert answer.status == 404
        assert "www-authenticate" not in answer.headers


async def test_the_endpoint_learns_who_asks_and_not_by_what() -> None:
    async with open_app() as world:
        answer = await world.ask("POST /mcp?session=x", ADA, "{}")
        assert answer.body == b"mcp"
        ((scope, principal, body),) = world.endpoint.seen
        assert (principal, body, scope["query_string"]) == ("ada", b"{}", b"session=x")
        assert b"s3cret" not in repr(scope).encode()


async def test_a_large_upload_without_a_token_is_refused_and_not_read() -> None:
    async with open_app() as world, world.served.peer() as peer:
        await peer.send(
            f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{world.served.port}\n"
            "Content-Length: 1000000000\n\n"
        )
        assert (await peer.answer()).status == 401
        assert await peer.rest() == b""


async def test_monitors_are_told_whether_we_live_and_serve() -> None:
    async with open_app() as world:
        assert (await world.ask("GET /healthz")).status == 200
        assert (await world.ask("GET /readyz")).status == 200
        world.ready = False
        assert (await world.ask("GET /healthz")).status == 200
        draining = await world.ask("GET /readyz")
        assert (draining.status, json.loads(draining.body)) == (503, {"status": "draining"})


async def test_what_is_not_there_says_so() -> None:
    async with open_app() as world:
        for path in ("/nothing", "/mcp/x", "/static/x", "/servers/x/y", "/%2e%2e/etc/passwd"):
            answer = await world.ask(f"GET {path}", ADA)
            assert answer.status == 404
            assert "MCP is at /mcp" in error(answer)
        answer = await world.ask("POST /healthz", ADA)
        assert (answer.status, set(answer.headers["allow"].split(", "))) == (
            405,
            {"GET", "HEAD", "OPTIONS"},
        )


async def test_a_bug_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async with open_app() as world:
        answer = await world.ask("POST /mcp", ADA, "crash")
        assert answer.status == 500
        said = error(answer)
        assert said.startswith("internal error (log id ")
        assert b"secret" not in answer.body
        (record,) = [r for r in caplog.records if r.message == "request_crashed"]
        assert vars(record)["fields"]["log_id"] in said


async def test_a_bug_in_the_middle_of_an_answer_does_not_look_like_its_end() -> None:
    async with open_app() as world, world.served.peer() as peer:
        await peer.send(
            f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{world.served.port}{ADA}\n"
            "Content-Length: 10\n\ncrash late"
        )
        said = await peer.rest()
        assert b"half" in said
        assert not said.endswith(b"0\r\n\r\n")


async def test_a_slash_at_the_end_changes_nothing() -> None:
    async with open_app() as world:
        assert (await world.ask("POST /mcp/", ADA, "{}")).body == b"mcp"
        assert (await world.ask("POST /mcp/", "", "{}")).status == 401
        assert (await world.ask("POST /mcp/", ADA, "{}", host="evil.example")).status == 403
        for path in ("/mcp//", "//mcp", "/mcp/x", "/mcpx"):
            assert (await world.ask(f"POST {path}", ADA, "{}")).status == 404
        assert [principal for _, principal, _ in world.endpoint.seen] == ["ada"]


async def test_a_path_must_be_one() -> None:
    async with open_app(tokens=None) as world:
        for target in ("http://127.0.0.1/mcp", "*"):
            assert (await world.ask(f"OPTIONS {target}")).status == 400


async def test_over_a_unix_socket_it_is_the_same() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s"
        async with open_app(Unix(path), ANY_PORT) as world, world.served.peer(path) as peer:
            head = f"POST /mcp HTTP/1.1\nContent-Length: 2{ADA}"
            assert (await peer.ask(f"{head}\nHost: localhost", "{}")).body == b"mcp"
            assert (await peer.ask(f"{head}\nHost: evil.example", "{}")).status == 403


async def test_a_status_shows_what_is_under_way_but_neither_ids_nor_arguments() -> None:
    async with open_app(servers=[Server("raw", **raw())]) as world:
        session = await world.manager.ensure("0123456789abcdefghijklmnopqrstuv", "ada")
        asked = {"server": "raw", "tool": "string_id_question", "args": {"hush": "hush"}}
        request = Request(session, world.manager)
        await TOOLBOX.get("execute_tool").call(request, {**asked, "timeout_ms": 0})
        await until(lambda: session.questions.open("elicitation"))
        answer = await world.ask("GET /status", ADA)
        status = json.loads(answer.body)
        assert status["version"] == "1"
        (shown,) = status["sessions"]
        assert (shown["session"], shown["principal"]) == ("01234567…", "ada")
        assert [(s["name"], s["status"]) for s in shown["servers"]] == [("raw", "connected")]
        assert [(t["tool"], t["status"]) for t in shown["tasks"]] == [(asked["tool"], "working")]
        assert [(q["server"], q["kind"]) for q in shown["questions"]] == [("raw", "elicitation")]
        assert b"89abcdef" not in answer.body
        assert b"hush" not in answer.body


async def test_a_status_is_of_ones_own_sessions_but_for_the_operator() -> None:
    async with open_app() as world:
        await world.manager.ensure("ada/main", "ada")
        await world.manager.ensure("bob/main", "bob")

        async def shown(more: str) -> set[str]:
            status = json.loads((await world.ask("GET /status", more)).body)
            return {session["session"] for session in status["sessions"]}

        assert await shown(ADA) == {"ada/main"}
        assert await shown(OPERATOR) == {"ada/main", "bob/main"}


def _has_two(buffers: Buffers, server: str) -> bool:
    return len(buffers.tail(server, "stderr", 9)) == 2


async def test_logs_are_of_ones_own_sessions_but_for_the_operator_and_are_kept() -> None:
    async with open_app(servers=[Server("raw", **raw()), Server("other", **raw())]) as world:
        for name in ("ada", "bob"):
            session = await world.manager.ensure(f"{name}/main", name)
            for server in ("raw", "other"):
                args = {"line": f"{name} at {server}", "n": 2}
                asked = {"server": server, "tool": "stderr", "args": args}
                await TOOLBOX.get("execute_tool").call(Request(session, world.manager), asked)
                await until(partial(_has_two, session.buffers, server))

        async def shown(more: str, query: str = "") -> list[tuple[str, str]]:
            said = json.loads((await world.ask(f"GET /logs{query}", more)).body)
            assert said["logs"] == sorted(said["logs"], key=lambda entry: entry["timestamp"])
            return sorted({(entry["session"], entry["data"][:-2]) for entry in said["logs"]})

        for _ in range(2):
            assert await shown(ADA, "?server=raw") == [("ada/main", "ada at raw")]
        assert await shown(OPERATOR, "?server=other") == [
            ("ada/main", "ada at other"),
            ("bob/main", "bob at other"),
        ]
        assert len(await shown(OPERATOR)) == 4
        assert await shown(ADA, "?server=nobody") == []
