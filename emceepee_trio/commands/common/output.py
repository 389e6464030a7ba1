"""Standard streams, which may be closed, full, or read by nobody; and what is said on them.

Everything that commands print goes through here, and none of it is obeyed by a terminal.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterable, Sequence

from ...model.text.show import escaped, in_ascii

SIGPIPE = 141
"""The status of who writes to a pipe that nobody reads, as a shell has it."""


class CannotWrite(Exception):
    """Not all that a command had to say on standard output has arrived."""


def fill_in() -> None:
    """Have three standard streams in any case, so that no other file takes the number of one.

    In place of a closed one is one that fails in the same way: input that cannot be read, output
    that cannot be written. Nobody misses stderr.
    """
    for fd, mode in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_RDWR)):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest number that is free is this one.
            os.open(os.devnull, mode)
            os.set_inheritable(fd, True)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, "r", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def is_open(fd: int) -> bool:
    """Whether standard input can be read, or standard output written."""
    wrong = os.O_WRONLY if fd == 0 else os.O_RDONLY
    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != wrong


def say(text: str = "") -> None:
    """Print *text* on standard output, now; of what is in it, only newlines are obeyed.

    Raises:
        CannotWrite: it has not arrived.
    """
    text = escaped(text, lines=True)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = in_ascii(text)
    try:
        print(text)
    except OSError as error:
        raise CannotWrite from error
    flush()


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of columns, for people."""
    # What a client calls itself, and what servers report, may hold anything; one line each.
    cells = [[title.upper() for title in titles]]
    cells += ([escaped(str(cell)) for cell in row] for row in rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cells)
    return [line.rstrip() for line in lines]


def megabytes(size: int) -> str:
    """So many bytes, for people."""
    return f"{size / 1_000_000:.0f} MB" if size >= 1_000_000 else f"{size / 1_000_000:.1f} MB"


def flush() -> None:
    """
    Raises:
        CannotWrite: something that was printed has not arrived.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        raise CannotWrite from error


def complain(text: str) -> None:
    """One line on stderr."""
    try:
        # In one piece: somebody else may write between two.
        sys.stderr.write(in_ascii(escaped(text)) + "\n")
        sys.stderr.flush()  # what is said may ask for something that we wait for
    except OSError:
        pass  # there is nobody left to be told


def give_up(error: CannotWrite) -> str | None:
    """Why nothing can be printed, None if the reader has left; nothing more will be tried."""
    # What is still buffered would be tried again at the exit, and fail loudly.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    if isinstance(error.__cause__, BrokenPipeError):
        return None
    return f"cannot write to standard output: {getattr(error.__cause__, 'strerror', None)}"
