"""The thread that writes to stderr, so that nobody else ever waits for whoever reads that.

What does not fit into its queue is counted, and the count is told in its place. Knows bytes, and
nothing of what is in them but that lines end.
"""

from __future__ import annotations

import errno
import io
import os
import queue
import select
import threading
from collections.abc import Callable

import attrs

ROOM = 1024 * 1024
"""Bytes that wait for a slow reader; as many again are being written. What comes when it is full
is dropped, and counted, until the thread gets on."""
LONGEST_PART = 65536
"""Bytes of a line that are kept until its end is printed."""
LAST_WORDS = 1.0
"""Seconds that the end of the process waits for what is not written yet."""


@attrs.define(eq=False)
class Writer:
    """:meth:`put` never waits and never fails, and may be called by any thread."""

    fd: int
    dropped: Callable[[int], bytes]
    """The line that says how many are missing."""
    next_due: Callable[[], float | None]
    """Seconds until `chores` are wanted."""
    chores: Callable[[bool], None]
    """What else the thread does when it gets on; told whether it is the last time."""
    _waiting: list[bytes] = attrs.field(factory=list, init=False)
    _size: int = attrs.field(default=0, init=False)
    _is_full: bool = attrs.field(default=False, init=False)
    _lost: int = attrs.field(default=0, init=False)
    """Lines that nobody was told of yet."""
    _is_torn: bool = attrs.field(default=False, init=False)
    """The last thing that was written is not a whole line."""
    _is_closing: bool = attrs.field(default=False, init=False)
    _lock: threading.RLock = attrs.field(factory=threading.RLock, init=False)
    # Reentrant, as is the queue: garbage may be collected in here and have something to say.
    _news: queue.SimpleQueue[None] = attrs.field(factory=queue.SimpleQueue, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def put(self, data: bytes) -> None:
        with self._lock:
            if self._is_full or (self._size and self._size + len(data) > ROOM):
                self._is_full = True
                self._lost += data.count(b"\n")
                return
            self._waiting.append(data)
            self._size += len(data)
            self._news.put(None)
            if not self._is_closing and (self._thread is None or not self._thread.is_alive()):
                self._start()

    def _start(self) -> None:
        # A daemon: whoever does not read shall not keep the process from ending.
        thread = threading.Thread(target=self._run, name="log", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many; what is next said tries again
            return
        self._thread = thread

    def close(self) -> None:
        """Wait until all is written, but no longer than `LAST_WORDS`."""
        self._is_closing = True
        self._news.put(None)
        if self._thread is not None:
            self._thread.join(LAST_WORDS)

    def start_over(self) -> None:
        """In a child of a fork, which has no thread, and where the lock may be held for ever."""
        self._lock, self._news = threading.RLock(), queue.SimpleQueue()
        self._waiting, self._size, self._is_full, self._lost = [], 0, False, 0
        self._thread = None

    def _run(self) -> None:
        is_last = False
        while not is_last:
            try:
                self._news.get(timeout=self.next_due())
                while True:
                    self._news.get_nowait()
            except queue.Empty:
                pass
            is_last = self._is_closing
            self.chores(is_last)
            self._write(*self._take())

    def _take(self) -> tuple[bytes, int]:
        with self._lock:
            waiting, self._waiting = self._waiting, []
            lost, self._lost = self._lost, 0
            self._size, self._is_full = 0, False
        return b"".join(waiting), lost

    def _write(self, data: bytes, lost: int) -> None:
        """All of it, however long that takes. What cannot be written is lost as well."""
        missing = self.dropped(lost) if lost else b""
        rest = memoryview(data + missing)
        if rest and self._is_torn:
            rest = memoryview(b"\n" + rest)
        while rest:
            try:
                written = os.write(self.fd, rest)
            except OSError as error:
                if error.errno == errno.EAGAIN:  # it is somebody else's, too, who wants it so
                    select.select([], [self.fd], [])
                    continue
                # A full disk may be emptied; if the reader is gone nobody will ever know.
                unwritten = bytes(rest).count(b"\n") - bool(missing)
                with self._lock:
                    self._lost += max(0, unwritten) + lost
                return
            self._is_torn = rest[written - 1] != ord("\n")
            rest = rest[written:]


class Stderr(io.BufferedIOBase):
    """In place of ``sys.stderr``: tracebacks and warnings take the same way as the log.

    A line at a time, since whoever prints writes it in parts; or what there is when it is flushed.
    """

    name = "<stderr>"

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._line = b""
        # Reentrant for the reason that the writer's is.
        self._lock = threading.RLock()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._writer.fd

    def isatty(self) -> bool:
        return os.isatty(self._writer.fd)

    def write(self, data: object) -> int:
        part = bytes(data)  # type: ignore[call-overload]  # of whatever has bytes
        with self._lock:
            self._line += part
            if self._line.endswith(b"\n") or len(self._line) > LONGEST_PART:
                self.flush()
        return len(part)

    def flush(self) -> None:
        with self._lock:
            line, self._line = self._line, b""
            if line:
                self._writer.put(line)
