"""A pipe that nobody reads and that is full already: who waits to write to it waits for ever."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager

import attrs

SMALLEST = 4096


@attrs.define(eq=False)
class Pipe:
    reads: int
    writes: int
    filled: int
    is_closed: bool = attrs.field(default=False, init=False)

    def read_until(self, end: bytes) -> bytes:
        """What was written behind what it is filled with, up to a line with that."""
        while self.filled:
            self.filled -= len(os.read(self.reads, self.filled))
        read = b""
        while end not in read or not read.endswith(b"\n"):
            read += os.read(self.reads, 65536)
        return read

    def close_reader(self) -> None:
        self.is_closed = True
        os.close(self.reads)


@contextmanager
def full_pipe() -> Generator[Pipe]:
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, SMALLEST)
    os.set_blocking(writes, False)
    filled = 0
    try:
        while True:
            filled += os.write(writes, b"." * SMALLEST)
    except BlockingIOError:
        os.set_blocking(writes, True)
    pipe = Pipe(reads, writes, filled)
    try:
        yield pipe
    finally:
        if not pipe.is_closed:
            pipe.close_reader()  # which lets go whoever still writes
        os.close(writes)
