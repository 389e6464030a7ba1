from __future__ import annotations

import pytest
import trio

from echo_app import GET, App
from emceepee_trio.serving import requests
from raw_http import GUARD, serving

CHUNKED = "Transfer-Encoding: chunked\n\n5\nhello\n0\n\n"


async def test_a_connection_serves_more_than_a_thousand_requests() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            for number in range(1100):
                answer = await peer.ask(
                    "POST / HTTP/1.1\nHost: x\nContent-Length: 4", f"{number:4}"
                )
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
            await peer.send(f"HEAD /large HTTP/1.1\nHost: x\n\n{GET}\n\n")
            assert (await peer.answer(bodiless=True)).headers["content-length"] == "3000000"
            assert (await peer.answer()).status == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ("nonsense\n\n", 400),
        ("GET / HTTP/1.1\n\n", 400),  # without a Host
        ("GET / HTTP/1.1\nHost: a\nHost: b\n\n", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 1\nContent-Length: 2\n\n", 400),
        ("POST / HTTP/1.1\nHost: x\nTransfer-Encoding: gzip\n\n", 501),
        (f"POST / HTTP/1.1\nHost: x\nContent-Length: 5\n{CHUNKED}", 400),
        (f"POST / HTTP/1.1\nHost: x\nContent-Length: 0\n{CHUNKED}", 400),
        (f"POST / HTTP/1.0\nHost: x\nContent-Length: 5\n{CHUNKED}", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 5\nContent-Length: 6\n\nhello", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 5\ncontent-LENGTH: 5\n\nhello", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 5, 5\n\nhello", 400),
        ("POST / HTTP/1.1\nHost: x\nContent-Length: 5\n , 5\n\nhello", 400),
        (f"POST / HTTP/1.1\nHost: x\nTransfer-Encoding: chunked\n{CHUNKED}", 501),
        (f"GET / HTTP/1.1\nHost: x\nX: {'x' * requests.MAX_HEAD}\n\n", 431),
        (f"GET /{'x' * requests.MAX_HEAD} HTTP/1.1\nHost: x\n\n", 431),
        ("HEAD / HTTP/1.1\nHost: x\n" + "X: 1234567\n" * 5000 + "\n", 431),
        (f"GET / HTTP/1.1\nHost: x\nX: {'x' * 2 * requests.MAX_HEAD}", 431),  # and no end
    ],
)
async def test_what_is_no_request_is_refused_and_nobody_else_hears_of_it(
    sent: str, status: int
) -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send(sent)
            answer = await peer.answer(bodiless=sent.startswith("HEAD"))
            assert answer.status == status
            assert answer.headers["connection"] == "close"
            assert await peer.rest() == b""
            assert (await served.ask(GET)).status == 200


async def test_what_a_body_says_is_no_header() -> None:
    body = "x\nContent-Length: 3\nContent-Length: 4\n"
    post = f"POST /echo HTTP/1.1\nHost: x\nContent-Length: {len(body) + 3}\n\n{body}"
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send(post + post)
            assert (await peer.answer()).status == (await peer.answer()).status == 200


async def test_many_headers_that_stay_below_the_bound_are_fine() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served:
            assert (await served.ask(GET + "\nX: 1234567" * 3000)).status == 200


@pytest.mark.parametrize(
    "offer",
    [
        "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQAAP__",
        (
            "Connection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        ),
        "Connection: Upgrade\nUpgrade: websocket",  # and not even a correct one
    ],
)
async def test_upgrades_are_not_taken(offer: str) -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            assert (await peer.ask(f"{GET}\n{offer}")).status == 200
            assert (await peer.ask(GET)).status == 200


async def test_http_2_is_not_spoken() -> None:
    with trio.fail_after(GUARD):
        async with serving(App()) as served, served.peer() as peer:
            await peer.send("PRI * HTTP/2.0\n\nSM\n\n")
            said = await peer.rest()
            assert said.startswith(b"HTTP/1.1 "), said
