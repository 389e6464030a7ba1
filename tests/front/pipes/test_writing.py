"""What is written at once, and what comes before what."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import anyio
import trio
import trio.testing
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from emceepee_trio.front.pipes.writing import Out, Owed, Spelled, Writing, line

MORE = b"x" * 1_000_000
"""Than a pipe holds."""


@asynccontextmanager
async def open_writing() -> AsyncGenerator[tuple[Writing, Out, Owed, trio.lowlevel.FdStream]]:
    theirs, ours = os.pipe()
    out, items = anyio.create_memory_object_stream[SessionMessage | Spelled](0)
    owed, output = Owed(), trio.lowlevel.FdStream(ours)
    writing = Writing(output, items, out, owed)

    def failed(error: OSError) -> None:
        raise error

    async with trio.lowlevel.FdStream(theirs) as read, trio.open_nursery() as nursery:
        nursery.start_soon(writing.run, nursery.cancel_scope, failed)
        await trio.testing.wait_all_tasks_blocked()
        async with out:
            yield writing, out, owed, read


async def all_of(read: trio.lowlevel.FdStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += await read.receive_some()
    return data


async def test_a_line_is_written_at_once_and_is_not_owed_any_more() -> None:
    async with open_writing() as (writing, _, owed, read):
        owed.read(JSONRPCRequest(jsonrpc="2.0", id=7, method="x"))
        assert writing.write_now(line("hello", 7))
        assert not len(owed)
        assert await read.receive_some() == b"hello\n"


async def test_what_has_no_room_is_owed_and_comes_before_what_comes_later() -> None:
    async with open_writing() as (writing, out, owed, read):
        owed.read(JSONRPCRequest(jsonrpc="2.0", id=7, method="x"))
        assert writing.write_now(Spelled(MORE, 7))
        begun = os.read(read.fileno(), len(MORE))
        assert not writing.write_now(line("second"))  # though there is room
        async with trio.open_nursery() as nursery:
            nursery.start_soon(out.send, line("second"))
            await trio.testing.wait_all_tasks_blocked()
            assert not writing.write_now(line("third"))
            assert len(owed)
            rest = await all_of(read, len(MORE) + 7 - len(begun))
            assert begun + rest == MORE + b"second\n"
        assert not len(owed)


async def test_a_pipe_that_is_full_takes_nothing_at_once() -> None:
    async with open_writing() as (writing, out, owed, read):
        owed.read(JSONRPCRequest(jsonrpc="2.0", id=7, method="x"))
        filled = 0
        with suppress(BlockingIOError):
            while True:
                filled += os.write(writing._file.fileno(), MORE)
        answer = line("hello", 7)
        assert not writing.write_now(answer)
        assert len(owed)
        await out.send(answer)
        assert await all_of(read, filled + 6) == MORE[:filled] + b"hello\n"
    assert not len(owed)
