from __future__ import annotations

import socket

import attrs
import pytest
import trio
from raw_http import Peer, Served, serving

from emceepee_trio.front import connection, http1, listen
from emceepee_trio.front.connection import PATIENCE, Phase
from emceepee_trio.front.wire import Message, Receive, Scope, Send, send_bytes

GET = "GET / HTTP/1.1\nHost: x"
GUARD = 60
SHORT = 0.05
"""Seconds, in place of a patience that a test waits for."""


@attrs.define(eq=False)
class App:
    """Answers with the body it got; what else depends on the path."""

    gone: trio.Event = attrs.field(factory=trio.Event)
    """Somebody's client has gone."""
    busy: trio.Event = attrs.field(factory=trio.Event)
    """Somebody is being served."""
    go_on: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/deaf":
                await send_bytes(send, 401)
            case "/endless":
                await self.endless(receive, send)
            case "/wait":
                self.busy.set()
                await self.go_on.wait()
                await send_bytes(send, 200, b"waited")
            case "/forever":
                self.busy.set()
                await disconnected(receive)
                self.gone.set()
            case "/crash":
                raise ValueError("a bug")
            case "/large":
                await send_bytes(send, 200, b"x" * 3_000_000)
            case _:
                await self.echo(receive, send)

    async def echo(self, receive: Receive, send: Send) -> None:
        body, message = b"", {"more_body": True}
        while message.get("more_body"):
            message = dict(await receive())
            if message["type"] == "http.disconnect":
                self.gone.set()
                return
            body += message["body"]
        await send_bytes(send, 200, body)

    async def endless(self, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:

            async def stop_when_gone() -> None:
                await disconnected(receive)
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_when_gone)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                self.busy.set()
                piece: Message = {
                    "type": "http.response.body",
                    "body": b"x" * 65536,
                    "more_body": True,
                }
                await send(piece)
        self.gone.set()


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def test_a_connection_serves_more_than_a_thousand_requests() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            for number in range(1100):
                answer = await peer.ask(f"POST / HTTP/1.1\nHost: x\nContent-Length: 4", f"{number:4}")
                assert answer.body == b"%4d" % number


async def test_requests_sent_at_once_are_answered_in_order() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            request = "POST / HTTP/1.1\nHost: x\nContent-Length: 1\n\n"
            await peer.send(f"{request}1{request}2{request}3")
            assert [(await peer.answer()).body for _ in range(3)] == [b"1", b"2", b"3"]


async def test_a_chunked_body_arrives() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served:
            head = "POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked"
            assert (await served.ask(head, "2\nab\n1\nc\n0\n\n")).body == b"abc"


async def test_a_body_that_waits_to_be_asked_for_is_asked_for() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send("POST / HTTP/1.1\nHost: x\nExpect: 100-continue\nContent-Length: 2\n\n")
            assert (await peer.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            await peer.send(b"ok")
            assert (await peer.answer()).body == b"ok"


async def test_a_head_request_is_answered_without_a_body() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send("HEAD /wait HTTP/1.1\nHost: x\n\n" "GET / HTTP/1.1\nHost: x\n\n")
            served_app_may_go_on(served)
            first = await peer.answer(bodiless=True)
            assert first.headers["content-length"] == "6"
            assert (await peer.answer()).body == b""


def served_app_may_go_on(served: Served) -> None:
    """Replaced below."""
