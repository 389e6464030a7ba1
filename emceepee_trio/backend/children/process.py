"""The stdio transport: one child process, its three pipes, and the JSON-RPC messages on them.

Owns the child from its start to its reaping, the process group it leads, and the bounds on what
it may say. Does not know what the messages mean, nor why the child was wanted or fails, nor how
those are found that have left the group: :mod:`.reaper` does.

A connection is *over* when the child is gone, closes stdout or says too long a line, or when the
block is left. The child is then ended in steps, cancelled or not: end of stdin, TERM, KILL.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import struct
import termios
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from typing import Self

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from trio.lowlevel import FdStream

from ...model.json.intake import Measure
from ...waits.slices import in_slices
from ..connections.messages import dump, parse
from .files import restore_limit
from .lines import Lines, text
from .reaper import Kin, Reaper

PATIENCE = 2.0
"""Seconds for each step of the end, unless somebody is in a hurry. Others import this."""
LAST_WORDS = 0.5
"""Seconds: ours, for a line being written; the child's, to say why its stdout has ended."""
KILL_PATIENCE = 2.0
"""Seconds for the kernel to end what was killed; a child stuck in the kernel is left behind."""
TEXT_LINE = 16 * 1024
"""Bytes. Noise is cut there; longer lines of stderr come in pieces."""
BREATH = 32
"""Lines that are handled before others have their turn; a pipe holds tens of thousands."""
PAUSE = 0.002
"""Seconds of that turn, if the lines were no messages: who prints without end waits for us."""
CHUNK = 64 * 1024
"""Bytes read at once, which is what a pipe holds by default."""
LEFT_OVER = 1024 * 1024
"""Bytes read once the child is gone: pipes hold no more, what follows is somebody else's."""


@attrs.frozen
class Exit:
    """How a child ended: by itself with a code, or by a signal."""

    code: int | None
    signal: str | None

    @classmethod
    def of(cls, status: int) -> Exit:
        if status >= 0:
            return cls(status, None)
        names = {number.value: number.name for number in signal.Signals}
        return cls(None, names.get(-status, f"signal {-status}"))


@attrs.define(eq=False)
class Process:
    """A child and the messages it exchanges with us. Made by :func:`open_process` only."""

    pid: int
    reads: trio.MemoryReceiveChannel[SessionMessage | Exception]
    writes: Writes
    _child: trio.Process = attrs.field(repr=False)  # it would show its arguments
    _stdin: FdStream
    _stdout: FdStream
    _stderr: FdStream
    _parsed: trio.MemorySendChannel[SessionMessage | Exception]
    _queued: MemoryObjectReceiveStream[bytes]
    _measure: Measure
    _on_stderr: Callable[[str], None]
    _on_noise: Callable[[str], None]
    _kin: Kin | None
    settles: Callable[[SessionMessage], bool] = lambda _: False
    """Takes an answer that nothing is in front of, and what it takes goes no further."""
    patience: float = PATIENCE
    """Seconds for each step of the end; a change counts from the next step."""
    started_at: float = attrs.field(factory=time.time, init=False)
    heard: int = attrs.field(default=0, init=False)
    """Bytes that it has written to us, on either pipe."""
    exit: Exit | None = attrs.field(default=None, init=False)
    exited: trio.Event = attrs.field(factory=trio.Event, init=False)
    failure: str | None = attrs.field(default=None, init=False)
    _writing: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _written: trio.Event = attrs.field(factory=trio.Event, init=False)
    _stderr_read: trio.Event = attrs.field(factory=trio.Event, init=False)
    _over: trio.Event = attrs.field(factory=trio.Event, init=False)
    _left: trio.Event = attrs.field(factory=trio.Event, init=False)
    _left_over: int | None = attrs.field(default=None, init=False)
    _wrote: int = attrs.field(default=0, init=False)
    """Bytes that the pipe took."""
    _unread: int = attrs.field(default=0, init=False)
    """Of these, when we closed it."""

    @property
    def has_read(self) -> bool:
        """Whether anything of what we wrote was taken, by the child or by whom it has started."""
        return self._wrote > (_left_in(self._stdin) if self._stdin.fileno() != -1 else self._unread)

    def _close_stdin(self) -> None:
        if self._stdin.fileno() != -1:
            self._unread = _left_in(self._stdin)
            self._stdin.close()

    async def _run(self) -> None:
        """Everything about the child, until it is gone and the block is left."""
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as pumps:
                    pumps.start_soon(self._reap)
                    pumps.start_soon(self._read_stderr)
                    pumps.start_soon(self._read_stdout)
                    pumps.start_soon(self._write_stdin)
                    await self._over.wait()
                    await self._end()
                    await self._left.wait()
                    # All pumps end by themselves now, unless somebody cloned ``reads``.
                    pumps.cancel_scope.deadline = trio.current_time() + LAST_WORDS
            finally:
                if self.exit is None:  # a callback raised, or the child is stuck in the kernel
                    signal_group(self.pid, signal.SIGKILL)
                    with trio.move_on_after(KILL_PATIENCE, shield=True):
                        await self._reap()
                for end in (self._stdin, self._stdout, self._stderr, self._parsed, self._queued):
                    end.close()

    async def _end(self) -> None:
        """The end of stdin, TERM, KILL; each only if the one before did not do."""
        if self._left.is_set() and self.exit is None:
            with trio.move_on_after(min(LAST_WORDS, self.patience)):
                await self._written.wait()
        self._writing.cancel()
        self._close_stdin()
        for step in (None, signal.SIGTERM, signal.SIGKILL):
            if self.exit is None:
                if step is not None:
                    signal_group(self.pid, step)
                with trio.move_on_after(KILL_PATIENCE if step == signal.SIGKILL else self.patience):
                    await self.exited.wait()

    async def _reap(self) -> None:
        status = await self._child.wait()
        # No checkpoint since the child was reaped: its number cannot be anybody else's yet.
        signal_group(self.pid, signal.SIGKILL)
        self.exit = Exit.of(status)
        self.exited.set()
        self._over.set()
        self._left_over = LEFT_OVER
        for pipe in (self._stdout, self._stderr):
            if pipe.fileno() != -1:
                trio.lowlevel.notify_closing(pipe)
        if self._kin is not None:
            await self._kin.end()

    async def _receive(self, pipe: FdStream) -> bytes:
        """The next bytes; none at EOF, or when the child is gone and *pipe* is empty."""
        waited = False
        while self._left_over is None or self._left_over > 0:
            try:
                chunk = os.read(pipe.fileno(), CHUNK)
            except BlockingIOError:
                if self._left_over is not None:
                    break  # a grandchild may hold the other end for ever
                # _reap() wakes us. No checkpoint between our look at what it did and the wait.
                with suppress(trio.ClosedResourceError):
                    await trio.lowlevel.wait_readable(pipe)
                waited = True
            else:
                self.heard += len(chunk)
                if not waited:  # a child that floods us is not the only one
                    await trio.lowlevel.checkpoint()
                if self._left_over is not None:
                    self._left_over -= len(chunk)
                return chunk
        return b""

    async def _read_stderr(self) -> None:
        lines = Lines(TEXT_LINE)
        while chunk := await self._receive(self._stderr):
            for n, line in enumerate(lines.feed(chunk), 1):
                self._on_stderr(text(line))
                if n % BREATH == 0:
                    await self._breathe(PAUSE)
        if line := lines.rest():
            self._on_stderr(text(line))
        self._stderr_read.set()

    async def _read_stdout(self) -> None:
        with self._parsed:
            try:
                await self._parse_stdout()
            except trio.BrokenResourceError:
                # Nobody listens any more, but a child that cannot write cannot exit either.
                while await self._receive(self._stdout):
                    pass
            self._stdout.close()  # to a child that says too much, a broken pipe
            if self.failure is None:
                # Who sees the end of ``reads`` wants to know why, and asks at once.
                with trio.move_on_after(LAST_WORDS):
                    await self.exited.wait()
                    await self._stderr_read.wait()
        self._over.set()

    async def _parse_stdout(self) -> None:
        most = self._measure.size
        lines = Lines(most + 1)
        while chunk := await self._receive(self._stdout):
            for n, line in enumerate(lines.feed(chunk), 1):
                if len(line) > most:
                    self.failure = f"message too long (limit {most} bytes)"
                    return
                is_noise = not await self._take(line)
                line = b""  # not held until the next one comes, however long it is
                if n % BREATH == 0:
                    await self._breathe(PAUSE if is_noise else 0)
        await self._take(lines.rest())

    async def _breathe(self, pause: float) -> None:
        if self.exit is None:
            await trio.sleep(pause)
        else:  # somebody waits for its last words
            await trio.lowlevel.checkpoint()

    async def _take(self, line: bytes | bytearray) -> bool:
        """Whether it is one of ours."""
        said = await in_slices(parse(line, self._measure))
        if said.why_not is not None:
            self._on_noise(text(line[:TEXT_LINE]))
        for n, message in enumerate(map(SessionMessage, said.messages), 1):
            if n % BREATH == 0:
                await trio.lowlevel.checkpoint()
            # Who waits for more has handled all that was in front of it.
            if self._parsed.statistics().tasks_waiting_receive and self.settles(message):
                continue
            try:
                self._parsed.send_nowait(message)  # as a rule somebody waits for it
            except trio.WouldBlock:
                await self._parsed.send(message)
        return said.why_not is None

    async def _write_stdin(self) -> None:
        """The only writer, so that a cancelled sender leaves either a whole line or none."""
        gone = suppress(trio.BrokenResourceError, trio.ClosedResourceError)
        with self._writing, self._queued, gone:
            async for line in self._queued:
                await self._stdin.send_all(line)
                self._wrote += len(line)
        self._close_stdin()
        self._written.set()

    def _write_now(self, line: bytes) -> bool:
        """Write a short line at once, if nobody is in front and the pipe has room.

        The kernel takes so short a line whole or not at all. Saves three task switches a call.
        """
        # A writer that does not wait is writing, or about to: what it was handed is in front of us.
        # Nor does one wait once there is nothing more to come.
        idle = self._queued.statistics().tasks_waiting_receive
        if not idle or len(line) > select.PIPE_BUF or self._stdin.fileno() == -1:
            return False
        try:
            wrote = os.write(self._stdin.fileno(), line)
        except OSError:  # no room, or nobody reads: the writer deals with either
            return False
        self._wrote += wrote
        return wrote == len(line)


@attrs.define(eq=False)
class Writes:
    """What a dispatcher takes for a write stream."""

    _queue: MemoryObjectSendStream[bytes]
    write_now: Callable[[bytes], bool] = attrs.field(init=False)
    """Of the child, once there is one."""

    async def send(self, message: SessionMessage) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()  # the other half would cost what this saves
        line = await in_slices(dump(message.message)) + b"\n"
        if not self.write_now(line):
            await self._queue.send(line)

    def close(self) -> None:
        self._queue.close()

    async def aclose(self) -> None:
        await self._queue.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


@asynccontextmanager
async def open_process(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    measure: Measure,
    on_stderr: Callable[[str], None],
    on_noise: Callable[[str], None],
    reaper: Reaper | None = None,
) -> AsyncGenerator[Process]:
    """Start *command* with *env*; when the block is left its process group is gone.

    With a *reaper* so is whatever has left that group, and all of it if we are killed.
    An :exc:`OSError` of the start is raised as it is. A line of stdout that is too long ends the
    connection. The callbacks must not block; whatever they raise ends the block.
    """
    if reaper is not None:
        env = await reaper.tag(env)
    child = await trio.lowlevel.open_process(
        command, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, cwd=cwd, start_new_session=True
    )
    # No checkpoint from here to the block's body: the child belongs to nobody in between.
    restore_limit(child.pid)
    assert isinstance(child.stdin, FdStream)
    assert isinstance(child.stdout, FdStream)
    assert isinstance(child.stderr, FdStream)
    # The SDK's own streams take a task switch more for each message.
    parsed, reads = trio.open_memory_channel[SessionMessage | Exception](0)
    queue, queued = anyio.create_memory_object_stream[bytes](0)
    writes = Writes(queue)
    process = Process(
        pid=child.pid,
        reads=reads,
        writes=writes,
        child=child,
        stdin=child.stdin,
        stdout=child.stdout,
        stderr=child.stderr,
        parsed=parsed,
        queued=queued,
        measure=measure,
        on_stderr=on_stderr,
        on_noise=on_noise,
        kin=None if reaper is None else reaper.watch(child.pid, env),
    )
    writes.write_now = process._write_now
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(process._run)
            try:
                yield process
            finally:
                reads.close()
                writes.close()
                process._left.set()
                process._over.set()
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        error = group.exceptions[0]
    else:
        return
    try:
        raise error  # as the body raised it; inside of ``except`` it would get another context
    finally:
        del error  # its traceback holds this frame


def _left_in(pipe: FdStream) -> int:
    """Bytes in it. Also of the end that is written to, when nobody is at the other any more."""
    (size,) = struct.unpack("i", fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(4)))
    return int(size)


def signal_group(leader: int, number: signal.Signals) -> None:
    """Signal a child and every descendant that has not left its process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
