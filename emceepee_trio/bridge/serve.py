"""Standard input and output, a message a line, until either ends or a signal comes.

They may be one and the same (a socket, a terminal) and may be non-blocking, by the doing of whoever
else has them open.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Queue
from types import FrameType

from .http import Address
from .relay import AT_ONCE, Relay

CHUNK = 65536
LONGEST = 64 * 1024 * 1024
"""Bytes of a line; the daemon refuses much shorter ones, and says so."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
GRACE = 0.25
"""Seconds for requests that are under way when input ends."""
IN_HAND = 1.0
"""Seconds for the line that is being taken when all others are answered."""
GOODBYE = 2.0
"""Seconds for the daemon to end our session."""


class LineTooLong(Exception):
    """The client says something that nobody will ever read."""


class _Stop(BaseException):
    """A signal, or nobody reads our output any more."""


def serve(
    address: Address,
    find_token: Callable[[], str | None],
    view: str | None = None,
    server: str | None = None,
) -> None:
    """Be the client's server, with that view or as that server alone, until it is gone, or a
    signal comes.

    Raises:
        LineTooLong: and it is left.
    """
    for number in SIGNALS:
        signal.signal(number, _stop)
    relay = Relay(address, find_token, _Output().write, view, server)
    try:
        # A thread takes the lines, which may wait for a daemon: the end of input is seen meanwhile.
        said: Queue[bytes | None] = Queue(AT_ONCE)
        taking = threading.Thread(target=_take, args=(said, relay), daemon=True)
        taking.start()
        for line in _lines():
            if line.strip():
                said.put(line)
        relay.wait_taken(lambda: not said.unfinished_tasks)
        relay.wait_answered(GRACE)
        relay.give_up()
        with suppress(Empty):
            while left := said.get_nowait():
                relay.take(left)
        # What it has in hand is in no queue, and is answered by nobody else.
        said.put(None)
        taking.join(IN_HAND)
    except _Stop:
        pass
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        goodbye = threading.Thread(target=relay.end, daemon=True)
        goodbye.start()
        goodbye.join(GOODBYE)


def _take(said: Queue[bytes | None], relay: Relay) -> None:
    try:
        while line := said.get():
            relay.take(line)
            said.task_done()
            relay.has_taken()
    except BaseException:
        _end()
        raise


def _end() -> None:
    """Have the main thread stop, which may be waiting for input."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop


def _lines() -> Iterator[bytes]:
    number, line = sys.stdin.fileno(), bytearray()
    while True:
        select.select([number], [], [])
        try:
            chunk = os.read(number, CHUNK)
        except BlockingIOError:
            continue
        if not chunk:
            return
        *ends, beginning = chunk.split(b"\n")
        for end in ends:
            yield bytes(line + end)
            line.clear()
        line += beginning
        if len(line) > LONGEST:
            raise LineTooLong(f"a line of more than {LONGEST} bytes")


class _Output:
    """One line after the other, whoever writes them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        # In JSON, line breaks stand only between values.
        rest = memoryview(line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
        number = sys.stdout.fileno()
        with self._lock:
            while rest:
                select.select([], [number], [])
                try:
                    rest = rest[os.write(number, rest) :]
                except BlockingIOError:
                    continue
                except OSError:  # nobody reads it any more
                    _end()
                    return
