"""Server-sent events, cut anywhere."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.backend.http.event_stream import BREATH, EventStream, ServerSentEvent, TooLong

PIECES = [
    *(b"data: a", b"data:b", b"data", b"data:  c", b"event: endpoint", b"event", b": a comment"),
    *(b"\xef\xbb\xbfdata: d", b"\xef\xbb\xbf"),
    *(b"id: 7", b"id:", b"id: \xc3\xbc", b"retry: 10", b"retry: -1", b"retry: 1e3", b"x: y", b"x"),
]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.sampled_from(PIECES) | st.just(b""), max_size=12))
    ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
    return b"".join(line + draw(ends) for line in lines)


def events(*chunks: bytes, limit: int = 1000) -> list[ServerSentEvent]:
    stream = EventStream(limit)
    return [event for chunk in chunks for event in stream.feed(chunk) if event is not None]


@given(streams(), st.lists(st.integers(0, 200)))
def test_events_are_the_same_however_they_are_cut(text: bytes, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    chunks = [text[a:b] for a, b in pairwise(places)]
    whole = events(text.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    assert events(*chunks) == events(text) == whole
    assert events(*(bytes([byte]) for byte in text)) == whole


@pytest.mark.parametrize(
    ("text", "event"),
    [
        (b"data: a\n\n", ServerSentEvent(data=b"a")),
        (b"data: a\ndata: b\n: no\n\n", ServerSentEvent(data=b"a\nb")),
        (b"event: x\ndata:a\n\n", ServerSentEvent("x", b"a")),
        (b"\xef\xbb\xbfdata: a\n\n", ServerSentEvent(data=b"a")),
        (b"\xef\xbb\xbf\ndata: a\n\n", ServerSentEvent(data=b"a")),
        (b"\n\xef\xbb\xbfdata: a\ndata: b\n\n", ServerSentEvent(data=b"b")),
        (b"id: 1\nretry: 20\ndata:\n\n", ServerSentEvent(id=b"1", retry_ms=20)),
        (b"id: 1\n\n", ServerSentEvent(id=b"1")),
        (b"id: 1\nretry: 9\nid: 2\n\n", ServerSentEvent(id=b"2", retry_ms=9)),
        (
            b"".join(b"id: %d%b\n" % (n, b"data: " * 160) for n in range(5)) + b"\n",
            ServerSentEvent(id=b"4" + b"data: " * 160),
        ),
        (b"retry: 999999999\n\n", ServerSentEvent(retry_ms=60_000)),
    ],
)
def test_an_event_is_what_its_lines_say(text: bytes, event: ServerSentEvent) -> None:
    assert events(text) == [event]


@pytest.mark.parametrize(
    "line",
    [
        *(b"retry: -1", b"retry: 1.5", b"retry: 1e9", b"retry: " + b"9" * 10, b"retry: \xd9\xa1"),
        *(b"id: a\tb", b"id: \xc3\xbc", b"id: a\x00", b"id: " + b"x" * 1025, b"id:  a"),
    ],
)
def test_what_cannot_be_reckoned_with_or_sent_in_a_header_is_left_out(line: bytes) -> None:
    assert events(line + b"\ndata: a\n\n", limit=10_000) == [ServerSentEvent(data=b"a")]


def test_an_event_without_an_end_is_none() -> None:
    assert events(b"data: a\n") == []
    assert events(b"\n\n\n: ping\n\n") == []


@pytest.mark.parametrize(
    "text", [b"data: " + b"x" * 995, b"x" * 1001, b"data: " + b"x" * 400 + b"\n", b"data:a\n"]
)
def test_there_is_a_limit_on_an_event(text: bytes) -> None:
    with pytest.raises(TooLong):
        events(*[text] * 200)


def test_there_is_none_on_a_stream() -> None:
    assert len(events(*[b": ping\n\ndata: " + b"x" * 990 + b"\n\n"] * 10)) == 10


def test_many_lines_are_gone_through_in_steps() -> None:
    steps = list(EventStream(1000).feed(b"\n" * 1000))
    assert steps == [None] * (1000 // BREATH)


def test_very_many_lines_of_one_event_are_put_together_in_no_time() -> None:
    stream = EventStream(16 * 1024 * 1024)
    for _ in range(40):
        for _ in stream.feed(b"data\n" * 13_000):
            pass
    began = time.thread_time()
    (event,) = stream.feed(b"\n")
    spent = time.thread_time() - began
    assert event is not None
    assert event.data == b"\n" * (40 * 13_000 - 1)
    assert spent < 0.005
