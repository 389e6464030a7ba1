"""What a server sends is a response, or refused; and it is the same however it is cut.

Each is what h11 makes of it, which read responses before, or stricter.
"""

from __future__ import annotations

from itertools import pairwise

import h11
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.backend.http.responses import LONGEST, BadResponse, ResponseReader

OK = "HTTP/1.1 200 OK\r\n"
TWO = "content-length: 2\r\n"
CHUNKED = "transfer-encoding: chunked\r\n"
REFUSED = "refused"
STRICTER = "refused, although h11 takes it"

GOOD = [
    (f"{OK}{TWO}\r\nok", "200 ok, goes on"),
    (f"HTTP/1.1 200\r\n{TWO}\r\nok", "200 ok, goes on"),
    ("HTTP/1.1 200 OK\ncontent-length: 2\n\nok", "200 ok, goes on"),
    (f"{OK}{CHUNKED}\r\n2\r\nok\r\n0\r\n\r\n", "200 ok, goes on"),
    (f"{OK}Transfer-Encoding: Chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", "200 ok, goes on"),
    (f"{OK}{CHUNKED}\r\n2 \r\nok\r\n0\r\n\r\n", "200 ok, goes on"),
    (f"{OK}{CHUNKED}\r\n2;x=y\r\nok\r\n0\r\nt: 1\r\n\r\n", "200 ok, goes on"),
    (f"{OK}{TWO}{CHUNKED}\r\n2\r\nok\r\n0\r\n\r\n", "200 ok, goes on"),
    (f"{OK}x: \u00e9\r\n{TWO}\r\nok", "200 ok, goes on"),
    (f"{OK}connection: upgrade\r\nupgrade: h2c\r\n{TWO}\r\nok", "200 ok, goes on"),
    (f"{OK}connection: close\r\n{TWO}\r\nok", "200 ok"),
    (f"HTTP/1.0 200 OK\r\n{TWO}\r\nok", "200 ok"),
    (f"{OK}\r\nok", "200 ok"),
    ("HTTP/1.1 204 No\r\n\r\n", "204 , goes on"),
    (f"HTTP/1.1 304 No\r\n{TWO}\r\n", "304 , goes on"),
    (f"HTTP/1.1 100 C\r\n\r\n{OK}{TWO}\r\nok", "200 ok, goes on"),
    (f"HTTP/1.1 103 C\r\nx: y\r\n\r\nHTTP/1.1 102 C\r\n\r\n{OK}{TWO}\r\nok", "200 ok, goes on"),
    # What follows is nobody's answer, and the next request has another connection.
    (f"{OK}{TWO}\r\nok{OK}{TWO}\r\nno", "200 ok"),
    (f"{OK}{TWO}\r\nokno", "200 ok"),
    (f"{OK}connection: close\r\n{TWO}\r\nokno", "200 ok"),
    ("HTTP/1.1 204 No\r\n\r\nno", "204 "),
    (f"{OK}{CHUNKED}\r\n2\r\nok\r\n0\r\n\r\nno", "200 ok"),
]
BAD = [
    (f"{OK}{TWO}content-length: 3\r\n\r\nok", REFUSED),
    (f"{OK}{TWO}{TWO}\r\nok", STRICTER),
    (f"{OK}content-length: 2, 2\r\n\r\nok", STRICTER),
    (f"{OK}content-length: +2\r\n\r\nok", REFUSED),
    (f"{OK}content-length: -2\r\n\r\nok", REFUSED),
    (f"{OK}content-length: 2x\r\n\r\nok", REFUSED),
    (f"{OK}content-length: {'9' * 30}\r\n\r\nok", REFUSED),
    (f"{OK}content-length: \r\n\r\nok", REFUSED),
    (f"{OK}content-length: 3\r\n\r\nok", REFUSED),
    (f"{OK}transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", REFUSED),
    (f"{OK}transfer-encoding: gzip\r\n\r\nok", REFUSED),
    (f"{OK}{CHUNKED}{CHUNKED}\r\n2\r\nok\r\n0\r\n\r\n", REFUSED),
    (f"{OK}{CHUNKED}\r\n2\r\nok\r\n", REFUSED),
    (f"{OK}{CHUNKED}\r\nx\r\nok\r\n0\r\n\r\n", REFUSED),
    (f"{OK}{CHUNKED}\r\n-2\r\nok\r\n0\r\n\r\n", REFUSED),
    (f"{OK}{CHUNKED}\r\n2\r\nokno0\r\n\r\n", REFUSED),
    (f"{OK}{CHUNKED}\r\n{'f' * 20}\r\nok\r\n0\r\n\r\n", REFUSED),
    (f"{OK}x: a\r\n b\r\n{TWO}\r\nok", STRICTER),
    (f"{OK}x : a\r\n{TWO}\r\nok", REFUSED),
    (f"{OK}x: a\0b\r\n{TWO}\r\nok", REFUSED),
    (f"{OK}x: a\rb\r\n{TWO}\r\nok", REFUSED),
    (f"{OK}x: a\x07b\r\n{TWO}\r\nok", STRICTER),
    (f"{OK}x\r\n{TWO}\r\nok", REFUSED),
    (f"{OK}: a\r\n{TWO}\r\nok", REFUSED),
    (f"HTTP/2 200 OK\r\n{TWO}\r\nok", REFUSED),
    (f"HTTP/1.2 200 OK\r\n{TWO}\r\nok", STRICTER),
    (f"http/1.1 200 OK\r\n{TWO}\r\nok", REFUSED),
    (f"ICY 200 OK\r\n{TWO}\r\nok", REFUSED),
    (f"HTTP/1.1 2000 OK\r\n{TWO}\r\nok", REFUSED),
    (f"HTTP/1.1 20 OK\r\n{TWO}\r\nok", REFUSED),
    (f"HTTP/1.1 099 OK\r\n{TWO}\r\nok", REFUSED),
    (f"HTTP/1.1  200 OK\r\n{TWO}\r\nok", REFUSED),
    ("HTTP/1.1 101 S\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nno", REFUSED),
    ("HTTP/1.1 101 S\r\n\r\nno", REFUSED),
    ("HTTP/1.1 100 C\r\n\r\n", REFUSED),
    ("", REFUSED),
    ("hello", REFUSED),
]
cases = pytest.mark.parametrize(("said", "expected"), GOOD + BAD)


def read(*pieces: bytes) -> str:
    """What is made of it, and of its end."""
    reader, body = ResponseReader(), b""
    try:
        for piece in pieces:
            reader.feed(piece)
            body += reader.body()
        if not reader.is_whole:
            reader.end()
    except BadResponse:
        return REFUSED
    return f"{reader.status} {body.decode()}" + ", goes on" * reader.goes_on


def as_h11(said: bytes) -> str:
    connection, head, body = h11.Connection(h11.CLIENT), None, b""
    asked = h11.Request(method="POST", target="/", headers=[("host", "a"), ("content-length", "0")])
    connection.send(asked)
    connection.send(h11.EndOfMessage())
    connection.receive_data(said)
    if said:
        connection.receive_data(b"")
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                head = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                return REFUSED
    except h11.RemoteProtocolError:
        return REFUSED
    return f"{head} {body.decode()}"


@cases
def test_a_response_is_what_it_says_or_none(said: str, expected: str) -> None:
    assert read(said.encode("latin-1")) == (REFUSED if expected in BAD_WORDS else expected)


BAD_WORDS = {REFUSED, STRICTER}


@cases
def test_nothing_is_taken_that_h11_would_refuse(said: str, expected: str) -> None:
    others = as_h11(said.encode("latin-1"))
    if expected == STRICTER:
        assert others == "200 ok"
    else:
        assert others == expected.removesuffix(", goes on")


@given(st.sampled_from(GOOD + BAD), st.lists(st.integers(0, 120)))
def test_a_response_is_the_same_however_it_is_cut(case: tuple[str, str], cuts: list[int]) -> None:
    said, expected = case[0].encode("latin-1"), case[1]
    places = sorted({0, len(said), *(min(cut, len(said)) for cut in cuts)})
    read_in_pieces = read(*(said[a:b] for a, b in pairwise(places)))
    if expected.endswith(", goes on") or expected in BAD_WORDS:
        assert read_in_pieces == (REFUSED if expected in BAD_WORDS else expected)
    else:  # what comes in a piece of its own behind it is seen when the connection is used again
        assert read_in_pieces.removesuffix(", goes on") == expected


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (OK, "x: y\r\n" * 100),
        (OK + "x: ", "y" * 600),
        ("HTTP/1.1 100 C\r\nx: ", "y" * 600),
        ("", "H" * 600),
        (f"{OK}{CHUNKED}\r\n2;", "x" * 600),
        (f"{OK}{CHUNKED}\r\n2\r\nok\r\n0\r\nx: ", "y" * 600),
        (f"{OK}{CHUNKED}\r\n0\r\n", "x: y\r\n" * 100),
    ],
)
def test_what_is_no_body_has_an_end(beginning: str, piece: str) -> None:
    reader = ResponseReader()
    with pytest.raises(BadResponse):  # noqa: PT012 - one of them is too much
        reader.feed(beginning.encode())
        for _ in range(LONGEST // len(piece) + 2):
            reader.feed(piece.encode())


def test_a_body_has_none_and_is_not_kept() -> None:
    reader = ResponseReader()
    reader.feed(f"{OK}{CHUNKED}\r\n".encode())
    for _ in range(1000):
        reader.feed(b"400\r\n" + b"x" * 1024 + b"\r\n")
        assert reader.body() == b"x" * 1024
    assert not reader.is_whole


def test_responses_in_front_of_ours_may_be_many() -> None:
    reader = ResponseReader()
    for _ in range(LONGEST // 10):
        reader.feed(b"HTTP/1.1 102 Processing\r\n\r\n")
    reader.feed(f"{OK}x: a \r\n{TWO}\r\nok".encode())
    assert (reader.headers, reader.body()) == ([(b"x", b"a"), (b"content-length", b"2")], b"ok")


def test_trailers_are_no_headers() -> None:
    reader = ResponseReader()
    reader.feed(f"{OK}{CHUNKED}\r\n0\r\nmcp-session-id: evil\r\n\r\n".encode())
    assert reader.is_whole
    assert reader.headers == [(b"transfer-encoding", b"chunked")]


def test_what_is_wrong_is_an_error_of_the_request() -> None:
    assert issubclass(BadResponse, httpx2.RequestError)
