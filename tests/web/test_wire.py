from __future__ import annotations

import json

import pytest
from mcp_types import JSONRPCResponse

from emceepee_trio.model.json.intake import finished
from emceepee_trio.web.wire import accepts, dump, event, headers_of


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        ("application/json, text/event-stream", True),
        ("text/event-stream,application/json;q=0.1", True),
        ("*/*", True),
        ("APPLICATION/*, text/*", True),
        ("application/json", False),
        ("text/event-stream", False),
        ("text/html, application/xml", False),
        ("", False),
    ],
)
def test_accept_must_cover_both_kinds(accept: str, accepted: bool) -> None:
    assert accepts({"accept": accept}, "application/json", "text/event-stream") is accepted


def test_a_header_that_is_repeated_is_one_list() -> None:
    pairs = [(b"accept", b"application/json"), (b"host", b"h"), (b"accept", b"text/event-stream")]
    headers = headers_of({"headers": pairs})
    assert headers == {"accept": "application/json, text/event-stream", "host": "h"}


@pytest.mark.parametrize("value", ["a\nb", "a\r\nb", "\u2028", "\u2029", "\x85", "\x0b\x0c\x1c"])
def test_no_character_breaks_an_event(value: str) -> None:
    """Also not for clients that split lines as Python does."""
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": value})
    lines = finished(event(dump(message), "s.1", 10)).decode().splitlines()
    assert lines[:3] == ["id: s.1", "retry: 10", "event: message"]
    assert lines[4:] == [""]
    assert json.loads(lines[3].removeprefix("data: "))["result"]["text"] == value


def test_half_a_surrogate_pair_goes_out_as_it_came() -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "\ud83d"})
    assert json.loads(dump(message).encode())["result"]["text"] == "\ud83d"


def test_what_was_not_said_is_not_sent() -> None:
    message = JSONRPCResponse(jsonrpc="2.0", id="1", result={"x": None})
    assert json.loads(dump(message)) == {"jsonrpc": "2.0", "id": "1", "result": {"x": None}}


def test_a_long_event_is_written_in_steps() -> None:
    said = "\u2028é" * 10**6
    steps = event(said, "s.1")
    assert sum(1 for _ in steps) > 10
    whole = finished(event(said, "s.1")).decode()
    assert whole == "id: s.1\nevent: message\ndata: " + said.replace("\u2028", "\\u2028") + "\n\n"
