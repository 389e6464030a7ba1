"""What an app says, and what is written of it: one answer, or none."""

from __future__ import annotations

from typing import Any

import h11
import pytest
import trio

from echo_app import GET
from emceepee_trio.serving.answers import Answer, BadAnswer, refusal
from emceepee_trio.serving.asgi import Message, Receive, Scope, Send
from emceepee_trio.serving.requests import RequestHead
from raw_http import GUARD, serving

Headers = list[tuple[bytes, bytes]]
FIVE: Headers = [(b"content-length", b"5")]


def written(
    *pieces: bytes,
    headers: Headers | None = None,
    status: int = 200,
    method: str = "GET",
    version: str = "1.1",
) -> bytes:
    answer = Answer(RequestHead(method, b"/", version, [], is_last=version == "1.0"))
    answer.start(status, headers or [])
    last = len(pieces) - 1
    return b"".join(answer.piece(each, more=n < last) for n, each in enumerate(pieces))


def read(data: bytes, method: str = "GET") -> tuple[int, dict[bytes, bytes], bytes]:
    """As h11 does."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    connection.receive_data(b"")
    head = connection.next_event()
    assert isinstance(head, h11.Response)
    body = b""
    while not isinstance(event := connection.next_event(), h11.EndOfMessage):
        assert isinstance(event, h11.Data)
        body += event.data
    assert connection.trailing_data[0] == b""
    headers = dict(head.headers)
    assert headers.pop(b"date").endswith(b" GMT")
    return head.status_code, headers, body


@pytest.mark.parametrize(
    ("said", "status", "headers", "body"),
    [
        ({"pieces": [b"hello"], "headers": FIVE}, 200, {b"content-length": b"5"}, b"hello"),
        ({"pieces": [b"he", b"llo"], "headers": FIVE}, 200, {b"content-length": b"5"}, b"hello"),
        ({"pieces": [b"hello"]}, 200, {b"content-length": b"5"}, b"hello"),
        ({"pieces": [b""]}, 200, {b"content-length": b"0"}, b""),
        ({"pieces": [b"he", b"", b"llo"]}, 200, {b"transfer-encoding": b"chunked"}, b"hello"),
        ({"pieces": [b"", b""]}, 200, {b"transfer-encoding": b"chunked"}, b""),
        ({"pieces": [b"he", b"llo"], "version": "1.0"}, 200, {b"connection": b"close"}, b"hello"),
        ({"pieces": [b"hello"], "method": "HEAD"}, 200, {}, b""),
        (
            {"pieces": [b""], "headers": FIVE, "method": "HEAD"},
            200,
            {b"content-length": b"5"},
            b"",
        ),
        ({"pieces": [b""], "headers": [(b"content-length", b"0")], "status": 204}, 204, {}, b""),
        ({"pieces": [b""], "status": 304}, 304, {}, b""),
        ({"pieces": [b"x"], "status": 299}, 299, {b"content-length": b"1"}, b"x"),
        (
            {"pieces": [b""], "headers": [(b"Connection", b"x"), (b"Transfer-Encoding", b"gzip")]},
            200,
            {b"content-length": b"0"},
            b"",
        ),
        (
            {"pieces": [b""], "headers": [(b"X", b"\xe9\t!"), (b"set-cookie", b"")]},
            200,
            {b"x": b"\xe9\t!", b"set-cookie": b"", b"content-length": b"0"},
            b"",
        ),
    ],
)
def test_an_answer_is_read_as_it_was_meant(
    said: dict[str, Any], status: int, headers: dict[bytes, bytes], body: bytes
) -> None:
    pieces = said.pop("pieces")
    data = written(*pieces, **said)
    assert read(data, said.get("method", "GET")) == (status, headers, body)


@pytest.mark.parametrize("is_head", [False, True])
def test_a_refusal_is_an_answer_too(is_head: bool) -> None:
    data = refusal(503, b"retry-after: 1", is_head=is_head)
    status, headers, body = read(data, "HEAD" if is_head else "GET")
    assert (status, headers[b"connection"], headers[b"retry-after"]) == (503, b"close", b"1")
    assert bool(body) is not is_head


EVIL: list[Headers] = [
    [(b"x", b"a\r\nset-cookie: a=b")],
    [(b"x", b"a\nset-cookie: a=b")],
    [(b"x", b"a\r")],
    [(b"x", b"a\r\n\r\n<script>")],
    [(b"x", b"a\0")],
    [(b"x", b"a\x7f")],
    [(b"x: y\r\nz", b"a")],
    [(b"x y", b"a")],
    [(b"", b"a")],
    [(b"x:", b"a")],
    [*FIVE, *FIVE],
    [(b"content-length", b"5, 5")],
    [(b"content-length", b"-5")],
    [(b"content-length", b"x")],
]


@pytest.mark.parametrize("headers", EVIL)
def test_a_header_that_would_not_be_read_as_one_is_not_written(headers: Headers) -> None:
    with pytest.raises(BadAnswer):
        written(b"hello", headers=headers)


@pytest.mark.parametrize("status", [0, 99, 100, 101, 199, 600, 2000])
def test_a_status_that_is_none_of_an_answer_is_not_written(status: int) -> None:
    with pytest.raises(BadAnswer):
        written(b"", status=status)


@pytest.mark.parametrize("pieces", [[b"hell"], [b"hello!"], [b"hel", b"lo!"], [b"hel", b"l"]])
def test_an_answer_is_as_long_as_it_says(pieces: list[bytes]) -> None:
    with pytest.raises(BadAnswer):
        written(*pieces, headers=FIVE)


# -- and what becomes of it ----------------------------------------------------------------------


def start(status: int = 200, headers: Headers | None = None) -> Message:
    return {"type": "http.response.start", "status": status, "headers": headers or []}


def part(body: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


BAD: list[list[Message]] = [
    *([start(headers=each), part(b"hello")] for each in EVIL),
    [start(), start(), part(b"")],
    [part(b"")],
    [start(101), part(b"")],
    [start(headers=FIVE), part(b"hello!")],
    [start(), {"type": "http.response.trailers"}],
    [start()],
    [],
]


@pytest.mark.parametrize("said", BAD)
async def test_what_is_no_answer_is_answered_with_500(
    said: list[Message], caplog: pytest.LogCaptureFixture
) -> None:
    is_over = trio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in said:
            await send(message)
        is_over.set()

    with trio.fail_after(GUARD):
        async with serving(app) as served, served.peer() as peer:
            answer = await peer.ask(GET)
            assert (answer.status, answer.headers["connection"]) == (500, "close")
            assert b'"code": -32603' in answer.body
            assert await peer.rest() == b""
            await is_over.wait()
    is_told = len(said) > 1 or said == [part(b"")]
    assert ("answer_refused" in caplog.messages) is is_told


@pytest.mark.parametrize("rest", [[part(b"lo!")], [start()], [part(b"l")], []])
async def test_an_answer_that_goes_wrong_when_it_has_begun_is_cut(rest: list[Message]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in (start(headers=FIVE), part(b"hel", more=True), *rest):
            await send(message)

    with trio.fail_after(GUARD):
        async with serving(app) as served, served.peer() as peer:
            await peer.send(f"{GET}\n\n")
            assert (await peer.rest()).partition(b"\r\n\r\n")[2] == b"hel"


async def test_headers_of_an_app_are_whole_headers_and_nothing_else() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(start(headers=[(b"x", scope["query_string"]), *FIVE]))
        await send(part(b"hello"))

    with trio.fail_after(GUARD):
        async with serving(app) as served, served.peer() as peer:
            answer = await peer.ask("GET /?a%0d%0ab HTTP/1.1\nHost: x")
            assert (answer.headers["x"], answer.body) == ("a%0d%0ab", b"hello")
