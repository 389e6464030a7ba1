"""What a server behind a URL is shown of who asks, by somebody who gets that for it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pytest
import trio
from mcp import MCPError

from emceepee_trio.backend.http.auth import ServerAuth
from emceepee_trio.backend.shared import Shared
from emceepee_trio.config import Reconnect, Server
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.events import ServerDisconnected
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import running

pytestmark = QUIET

GUARD = 60
either_path = pytest.mark.parametrize("path", ["/mcp", "/sse"])


@attrs.define(eq=False)
class Tokens:
    """Of one principal: one after the other, each until it is refused."""

    tokens: list[str]
    shown: list[str] = attrs.field(factory=list, init=False)

    async def headers(self) -> Mapping[str, str]:
        await trio.lowlevel.checkpoint()
        if not self.tokens:
            raise ConnectFailed("log in at https://login.example/ada")
        self.shown.append(self.tokens[0])
        return {"Authorization": f"Bearer {self.tokens[0]}"}

    async def refused(self, shown: Mapping[str, str]) -> bool:
        await trio.lowlevel.checkpoint()
        if shown["Authorization"] == f"Bearer {self.tokens[0]}":
            self.tokens.pop(0)
        return bool(self.tokens)


@attrs.define(eq=False)
class Guarded:
    """A server that lets in who has the token of today."""

    token: str
    let_in: list[str] = attrs.field(factory=list, init=False)

    def server(self) -> HttpServer:
        return HttpServer(spoil=self.refuses, listens=True)

    async def refuses(self, request: Request, reply: Reply) -> bool:
        if request.headers.get("authorization") == f"Bearer {self.token}":
            self.let_in.append(request.method)
            return False
        error = {"code": -32000, "message": "who are you?"}
        await reply.json({"jsonrpc": "2.0", "id": 1, "error": error}, 401)
        return True


def shared(auth: ServerAuth) -> Shared:
    def of(server: Server, principal: str) -> ServerAuth | None:
        assert (server.name, principal) == ("it", "ada")
        return auth

    return Shared(auth_for=of)


@either_path
async def test_every_request_has_what_is_to_be_shown(path: str) -> None:
    guarded, auth = Guarded("one"), Tokens(["one"])
    with trio.fail_after(GUARD):
        async with open_http_server(guarded.server()) as server:
            entry = {
                "url": server.url.replace("/mcp", path),
                "headers": {"Authorization": "Bearer of all", "X-Trace": "on"},
            }
            async with running(entry, shared=shared(auth)) as it:
                await it.call("echo")
            assert len(guarded.let_in) == len(server.requests) == len(auth.shown)
            assert {request.headers["x-trace"] for request in server.requests} == {"on"}


@either_path
async def test_what_has_expired_is_shown_anew_and_nobody_notices(path: str) -> None:
    guarded, auth = Guarded("one"), Tokens(["one", "two"])
    with trio.fail_after(GUARD):
        async with open_http_server(guarded.server()) as server:
            url = server.url.replace("/mcp", path)
            async with running({"url": url}, shared=shared(auth)) as it:
                await it.call("echo")
                guarded.token = "two"
                assert not (await it.call("echo")).get("isError")
                assert guarded.let_in.count("tools/call") == 2
                assert not it.host.all(ServerDisconnected)


async def test_what_is_refused_for_good_is_the_end_and_says_so() -> None:
    guarded, auth = Guarded("one"), Tokens(["one", "two", "four"])
    with trio.fail_after(GUARD):
        async with open_http_server(guarded.server()) as server:
            entry = {"url": server.url, "reconnect": Reconnect(base_delay_ms=60_000)}
            async with running(entry, shared=shared(auth)) as it:
                await it.call("echo")
                guarded.token = "three"
                with pytest.raises(MCPError, match="Connection closed"):
                    await it.call("echo")
                lost = await it.host.wait_for(ServerDisconnected)
                assert lost.reason == f"{server.url} answered 401"
                assert len(server.of("tools/call")) == 3  # no third try, whatever else there is


async def test_who_is_refused_from_the_start_is_told_what_was_refused() -> None:
    guarded, auth = Guarded("other"), Tokens(["one"])
    with trio.fail_after(GUARD):
        async with open_http_server(guarded.server()) as server:
            async with running({"url": server.url}, shared=shared(auth)) as it:
                with pytest.raises(ConnectFailed, match="401 to what it was shown"):
                    await it.backend.connection()


async def test_who_has_nothing_to_show_says_what_to_do() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(Guarded("one").server()) as server:
            async with running({"url": server.url}, shared=shared(Tokens([]))) as it:
                with pytest.raises(ConnectFailed, match=r"log in at https://login\.example/ada"):
                    await it.backend.connection()
            assert server.requests == []
