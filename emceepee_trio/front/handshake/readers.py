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
from ...web.wire import (
    KEEP_ALIVE,
    KEEP_ALIVE_EVERY,
    HttpRequest,
    event,
    send_event,
    while_connected,
)
from .stream import Stream, StreamEntry, StreamReader

QUICK = 0.1
"""Seconds in which an answer may come to be sent as JSON instead of a stream, which costs more;
where many call at once, few are answered sooner."""
HEARING = 5
"""Of trio's ticks: what a server of others takes at most to pass on what it knows."""
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
    if not entry.hand_over():
        await write()
        return
    with trio.CancelScope(shield=True):  # bounded by the transport's patience with readers
        await write()


async def until_quick(stream: Stream) -> None:
    """Wait for the answer, unless something is said before it, or it takes longer."""
    entries = stream.entries
    with trio.move_on_after(QUICK):
        # Whatever is said before it, such as its progress, is not held back for it.
        while not (stream.is_open or stream.is_finished) and all(e.is_answer for e in entries):
            await stream.news.wait()


def only_answer(stream: Stream) -> StreamEntry | None:
    """The answer, if there is one and nothing else."""
    entries = stream.entries
    if stream.is_finished and not stream.is_open and len(entries) == 1 and entries[0].is_answer:
        return entries[0]
    return None


async def is_gone(request: HttpRequest) -> bool:
    """Whether its client is, as far as the server knows. No checkpoint if the server is ours."""
    if (look := request.look) is not None:
        return look()
    async with while_connected(request.receive):
        for _ in range(HEARING):
            await trio.lowlevel.checkpoint()
        return False
    return True
