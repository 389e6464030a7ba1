"""What the process tests do not say of it; those let real children say everything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

from emceepee_trio.backend.lines import Lines, dump, parse


@given(st.lists(st.binary(max_size=30)), st.integers(1, 10))
def test_lines_are_the_same_however_they_are_cut(chunks: list[bytes], most: int) -> None:
    whole = b"".join(chunks)
    cut, at_once = Lines(most), Lines(most)
    lines = [line for chunk in chunks for line in cut.feed(chunk)] + [cut.rest()]
    assert lines == [*at_once.feed(whole), at_once.rest()]
    assert sum(map(len, lines)) == len(whole) - whole.count(b"\n")
    assert max(map(len, lines)) <= most


@given(st.text())
def test_what_is_dumped_is_one_line_and_parsed_to_the_same(value: str) -> None:
    message = JSONRPCNotification(jsonrpc="2.0", method="m", params={"value": value})
    line = dump(SessionMessage(message))
    assert line.find(b"\n") == len(line) - 1
    (parsed,), understood = parse(line)
    assert understood
    assert parsed.message == message
