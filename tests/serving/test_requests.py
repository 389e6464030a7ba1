"""What is made of bytes, without a socket: the same, in whatever pieces they come."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_time import LINEAR, growth
from emceepee_trio.serving.requests import LONGEST, MAX_HEAD, MAX_HEADERS, BadRequest, Requests
from malformed import CASES, Malformed

Understood = list[Any]
"""Method, target and body of each request; at last the status of what is none."""


def understood(*pieces: bytes) -> Understood:
    requests, request, body = Requests(), None, b""
    found: Understood = []
    try:
        for piece in pieces:
            requests.feed(piece)
            while request or (request := requests.next()):
                body += requests.body()
                if not requests.is_whole:
                    break
                found.append((request.method, request.target, body))
                request, body = None, b""
    except BadRequest as bad:
        found.append(bad.status)
    return found


CHUNKED = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
GOOD = (
    b"\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n\r\n\r\n\r\n\r\n",
    (
        b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"6;a=b\r\n\r\n\r\n\r\n\r\n1\r\n\r\r\n0\r\nX: y\r\n\r\n"
    ),
    (
        b"POST /d HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n"
        b"Content-Length: 27\r\n\r\nGET /evil HTTP/1.1\r\nHost: x"
    ),
    b"HEAD /e HTTP/1.0\r\n\r\n",
)
READ: Understood = [
    ("GET", b"/a", b""),
    ("POST", b"/b", b"\r\n" * 4),
    ("POST", b"/c", b"\r\n\r\n\r\n\r"),
    ("POST", b"/d", b"GET /evil HTTP/1.1\r\nHost: x"),
    ("HEAD", b"/e", b""),
]


def test_one_behind_the_other() -> None:
    assert understood(b"".join(GOOD)) == understood(*GOOD) == READ


def test_byte_by_byte() -> None:
    data = b"".join(GOOD)
    assert understood(*(data[n : n + 1] for n in range(len(data)))) == READ


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_what_is_none_is_none_byte_by_byte(case: Malformed) -> None:
    *before, last = understood(*(case.sent[n : n + 1] for n in range(len(case.sent))), GOOD[0])
    if case.ours == 200:
        assert [target for _, target, _ in before] == [b"/"]
        assert last == READ[0]
    else:
        assert (before, last) == ([], case.ours)


@given(st.lists(st.integers(0, len(b"".join(GOOD))), max_size=6))
def test_in_whatever_pieces(cuts: list[int]) -> None:
    data, cuts = b"".join(GOOD), sorted(cuts)
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert understood(*pieces) == READ


TOKENS = [
    *(b"GET", b"POST", b" ", b"/", b"HTTP/1.1", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b":", b"\0"),
    *(
        b"Host: x\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"5",
        b"0",
        b",",
    ),
    *(b"hello", b"Connection: Upgrade\r\nUpgrade: x\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", b";a=b"),
    *(b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: x\r\n", b"X: y\r\n", b"\t", b"\xff"),
]


@given(st.lists(st.sampled_from(TOKENS), max_size=25), st.integers(0, 300))
def test_what_is_understood_does_not_depend_on_the_pieces(parts: list[bytes], cut: int) -> None:
    """Nor does what is refused, but for what is said to it."""
    data = b"".join(parts)

    def seen(*pieces: bytes) -> Understood:
        return ["refused" if type(each) is int else each for each in understood(*pieces)]

    assert seen(data[:cut], data[cut:]) == seen(data)
    assert seen(*(data[n : n + 1] for n in range(len(data)))) == seen(data)


def test_what_is_too_long_is_refused_before_it_is_whole() -> None:
    line = b"GET / HTTP/1.1\r\nHost: x\r\n"
    assert understood(line + b"X: " + b"y" * LONGEST) == [431]
    assert understood(line + b"X: " + b"y" * (MAX_HEAD - 8) + b"\r\n\r\n") == [("GET", b"/", b"")]
    assert understood(line + b"X: " + b"y" * MAX_HEAD + b"\r\n\r\n") == [431]
    assert understood(line + b"X:\r\n" * (MAX_HEADERS - 1) + b"\r\n") == [("GET", b"/", b"")]
    assert understood(line + b"X:\r\n" * MAX_HEADERS + b"\r\n") == [431]


def test_what_surrounds_chunks_is_bounded_and_the_chunks_are_not() -> None:
    head = CHUNKED.encode()
    ((_, _, body),) = understood(head, *[b"1;a=b\r\nx\r\n"] * LONGEST, b"0\r\n\r\n")
    assert body == b"x" * LONGEST
    assert understood(head, *[b"0;a=b"], *[b"b"] * LONGEST) == [431]
    assert understood(head, b"0\r\n", *[b"X: y\r\n"] * LONGEST) == [431]


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"", b"\r\n"),
        (b"GET / HTTP/1.1\r\n", b"X:\r\n"),
        (b"GET / HTTP/1.1\r\nX:", b" "),
        (f"{CHUNKED}fffff\r\n".encode(), b"\r\n"),
        (CHUNKED.encode(), b"1\r\nx\r\n"),
        (f"{CHUNKED}0\r\n".encode(), b"X:\r\n"),
    ],
)
def test_what_comes_at_once_takes_as_long_as_it_is(first: bytes, again: bytes) -> None:
    def make(size: int) -> Callable[[], object]:
        return partial(understood, first + again * (size // len(again)))

    assert growth(make, 16 * 1024) < LINEAR
