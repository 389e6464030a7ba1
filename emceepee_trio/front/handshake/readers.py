"""Connections that read the streams of the handshake era: what is written to them, and when.

An entry is handed over once it is certain to be written, as far as that can be: no sooner, because
what it carries would be lost, and no later, because it would be told twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from ...model.json.intake import finished
from ...serving.asgi import Send
from ...waits.slices import in_slices
from ...web.wire import KEEP_ALIVE, KEEP_ALIVE_EVERY, event, send_event
from .stream import Stream, StreamEntry, StreamReader

QUICK = 0.1
"""Seconds in which an answer may come to be sent as JSON instead of a stream, which costs more;
where many call at once, few are answered sooner."""
HEARING = 5
"""Of trio's ticks: what a server takes at most to pass on what it knows."""
RETRY_MS = 1000
"""What clients are told to wait before they come back to a stream."""


async def copy(reader: StreamReader, send: Send, *, is_primed: bool) -> None:
    """Write what the reader finds, until there is no more."""
    stream = reader.stream
    if is_primed:
        primer = finished(event("", stream.event_id(reader.cursor), RETRY_MS))
        await send_event(send, primer)
        stream.known()
    while True:
        entry = None
        with trio.move_on_after(KEEP_ALIVE_EVERY) as silence:
            entry = await reader.next()
        if silence.cancelled_caught:
            await send_event(send, KEEP_ALIVE)
            continue
        if entry is None:
            break
        said = entry.data
        data = await in_slices(event(said, stream.event_id(entry.number)))
        if entry.data is not said or not reader.is_current:
            continue  # meanwhile what it carried has gone back, or another connection has it
        await hand_over(entry, partial(send_event, send, data))
        reader.took(entry)
    await send({"type": "http.response.body", "body": b""})


async def hand_over(entry: StreamEntry, write: Callable[[], Awaitable[None]]) -> None:
    """Write an entry, unless the client is known to be gone."""
    await trio.lowlevel.checkpoint_if_cancelled()
    # From here on it is the transport's, and what it tells of is told. No checkpoint before that.
    is_told = entry.hand_over()
    with trio.CancelScope(shield=is_told):  # bounded by the transport's patience with readers
        await write()


async def quick_answer(stream: Stream) -> StreamEntry | None:
    """The answer, if it comes quickly and alone."""
    entries = stream.entries
    with trio.move_on_after(QUICK):
        # Whatever is said before it, such as its progress, is not held back for it.
        while not (stream.is_open or stream.is_finished) and all(e.is_answer for e in entries):
            await stream.news.wait()
    if stream.is_finished and not stream.is_open and len(entries) == 1 and entries[0].is_answer:
        return entries[0]
    return None


async def is_still_there(reader: StreamReader) -> bool:
    """Whether it is to be written to, after the server could say that its client is gone.

    To be asked inside :func:`while_connected`, which costs as much as all the rest of a quick
    answer; so it is not begun before it is known that something would be lost.
    """
    for _ in range(HEARING):
        await trio.lowlevel.checkpoint()
    return reader.is_current  # else its client has joined again meanwhile
