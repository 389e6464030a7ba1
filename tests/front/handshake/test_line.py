"""Whose oldest entry makes room: always the one that a look at all of them would find."""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.front.handshake.stream import Stream, StreamReader
from emceepee_trio.front.handshake.streams import Streams

ACTS = ("new", "say", "answer", "read", "listen", "leave", "come back", "discard", "make room")


@given(st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 5), st.integers(0, 3))))
def test_the_first_in_line_is_the_first_of_all(script: list[tuple[str, int, int]]) -> None:
    async def main() -> None:
        streams = Streams("s", keep=1_000)
        all_, readers = [streams.standalone], dict[Stream, StreamReader]()
        for act, which, number in script:
            stream = all_[which % len(all_)]
            reader = readers.get(stream)
            match act:
                case "new":
                    all_.append(streams.new())
                case "say" | "answer":
                    streams.add(stream, "x", is_answer=act == "answer")
                case "read" if reader is not None and (entry := stream.after(stream.taken)):
                    reader.took(entry)
                case "listen":
                    readers[stream] = stream.open_reader()
                case "leave" if reader is not None:
                    reader.close()
                case "come back" if number <= stream.last and stream.id in streams._streams:
                    readers[stream] = streams.resume(stream.event_id(number))
                case "discard" if stream is not streams.standalone:
                    streams.discard(stream)
                case "make room":
                    check(streams)
        while check(streams):
            pass
        assert len(streams._line._turns) <= 8 * len(all_)

    trio.run(main)


def check(streams: Streams) -> Any:
    turns = [turn for each in streams._streams.values() if (turn := each.turn) is not None]
    first = min(turns, default=None)
    stream = streams._line.pop()
    assert first == (stream and stream.turn)
    if stream is not None:
        streams._evict(stream)
    return stream
