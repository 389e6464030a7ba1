"""Where requests lead, and what goes with them."""

from __future__ import annotations

import base64
from typing import Any

import attrs
import httpx2
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from mcp import MCPError

from emceepee_trio.backend.connections import sdk
from emceepee_trio.backend.http.channels import Outgoing, Target
from emceepee_trio.backend.http.courier import leads_to, location
from http_server import HttpServer, Reply, Request, open_http_server
from recording import running

GUARD = 60
HERE = "http://here.example/mcp?a=1"
LOCATIONS = [
    *("/other", "other", "?b=2", "//here.example/x", "//elsewhere.example/x", "#there", ""),
    *("http://here.example", "http://HERE.example:80/x", "http://here.example:8080/x"),
    *("https://here.example/mcp", "https://here.example:443/", "https://here.example:8443/"),
    *("http://elsewhere.example/", "https://elsewhere.example/", "ftp://here.example/"),
    *("http://user:secret@here.example/", "http:///nowhere", "https:/x", "http://[::1]/", "a:b"),
    *("http://here.example:bad/", "http://exa mple/", "\u00e9", "/\u00e9", "http://[/"),
]
URLS = [HERE, "https://here.example/mcp", "http://me:too@here.example/", "http://[::1]:80/"]
STATUSES = [200, 300, 301, 302, 303, 304, 307, 308, 404]


@attrs.frozen
class Answer:
    """As much of a response as says where it leads."""

    request: Outgoing
    status: int
    headers: list[tuple[bytes, bytes]]

    async def chunk(self) -> bytes:
        raise AssertionError("nobody reads it")

    def leave(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def theirs(verb: str, status: int, url: str, said: str) -> httpx2.Response:
    headers = [(b"location", said.encode("latin-1"))]
    answer = httpx2.Response(status, headers=headers)
    transport = httpx2.MockTransport(lambda _: answer)
    with httpx2.Client(transport=transport, trust_env=False) as client:
        return client.request(verb, url)


@given(
    st.sampled_from(["POST", "GET", "DELETE"]),
    st.sampled_from(STATUSES),
    st.sampled_from(URLS),
    st.sampled_from(LOCATIONS),
)
def test_what_is_followed_is_what_the_sdk_follows(
    verb: str, status: int, url: str, said: str
) -> None:
    expected = theirs(verb, status, url, said)
    asked = Outgoing(verb, Target.of(httpx2.URL(url)), {})
    ours = Answer(asked, status, [(b"location", said.encode("latin-1"))])
    leads = leads_to(ours)
    try:
        there = location(ours)
    except httpx2.RemoteProtocolError:
        assert expected.next_request is None
        assert leads is None
        return
    if expected.next_request is None:
        assert there is None
        return
    assert there is not None
    assert there.copy_with(fragment=None) == expected.next_request.url.copy_with(fragment=None)
    assert (leads is not None) is sdk.is_followed(expected)


@pytest.mark.parametrize(
    "where", ["http://h:bad/", "javascript:alert(1)", "/a\tb", "/" + "a" * 70_000]
)
@pytest.mark.parametrize("status", [302, 307])
async def test_who_is_led_to_what_is_no_url_is_told_so_and_nobody_else_notices(
    where: str, status: int
) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        await reply.whole(status, location=where)
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            async with running({"url": server.url}) as it:
                for _ in range(2):
                    with pytest.raises(MCPError, match="not followed: its location is no URL"):
                        await it.call("echo")
            assert len(server.of("initialize")) == 1


async def test_names_in_utf_8_are_read_as_such() -> None:
    asked = Outgoing("GET", Target.of(httpx2.URL(HERE)), {})
    there = location(Answer(asked, 307, [(b"location", "http://\u00fc.example/".encode())]))
    assert there == httpx2.URL("http://xn--tda.example/")


async def test_whom_we_are_led_to_is_sent_the_same_and_what_follows_begins_at_home() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.path != "/mcp" or request.verb == "DELETE":
            return False
        await reply.whole(307, location="/other")
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            async with running({"url": server.url, "headers": {"X-Key": "1"}}) as it:
                assert (await it.call("echo", a=1))["content"]
    calls = server.of("tools/call")
    assert [call.path for call in calls] == ["/mcp", "/other"]
    assert calls[0].headers == calls[1].headers
    assert calls[0].body == calls[1].body


@pytest.mark.parametrize("own", [{}, {"Cookie": "mine=1"}])
async def test_cookies_go_with_what_is_sent_next_but_not_over_those_of_the_entry(
    own: dict[str, str],
) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "initialize":
            return False
        said: Any = {"jsonrpc": "2.0", "id": request.message["id"]}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        await reply.json(said | {"result": result}, set_cookie="node=7; Path=/; HttpOnly")
        return True

    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(spoil=spoil)) as server:
            server.sessions.add("")
            entry = {"url": server.url, "headers": {**own, "Mcp-Session-Id": ""}}
            async with running(entry | {"era": "handshake"}) as it:
                await it.call("echo")
    first, *others = [request.headers.get("cookie") for request in server.requests]
    assert first == own.get("Cookie")
    assert {*others} == {own.get("Cookie", "node=7")}


async def test_who_is_named_in_the_url_is_who_logs_in() -> None:
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server:
            url = server.url.replace("//", "//ada:love%3Alace@")
            async with running({"url": url, "headers": {"Authorization": "no"}}) as it:
                await it.call("echo")
    shown = base64.b64encode(b"ada:love:lace").decode()
    assert {r.headers["authorization"] for r in server.requests} == {f"Basic {shown}"}
    assert {r.headers["host"] for r in server.requests} == {f"127.0.0.1:{server.port}"}


async def test_how_a_body_is_framed_is_not_for_an_entry_to_say() -> None:
    headers = {"Content-Length": "3", "Transfer-Encoding": "chunked", "Accept": "text/html"}
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer(listens=True)) as server:
            async with running({"url": server.url, "headers": headers}) as it:
                await it.call("echo")
                await server.wait_for_listener()
    for request in server.requests:
        assert "transfer-encoding" not in request.headers
        assert request.headers.get("content-length", "0") == str(len(request.body))
        assert request.headers["accept"] == "application/json, text/event-stream"
