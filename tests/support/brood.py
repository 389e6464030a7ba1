"""Processes that hide from whoever has to end them, and how a test sees them all the same.

They are started by the raw server (``raw(*brood.flags)``), ignore SIGTERM, and are marked by how
long they sleep. Linux only: they are looked for in /proc.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

PROC = Path("/proc")
HIDDEN = 6
"""How many one server starts."""
FAMILY = HIDDEN + 1
"""With the server itself, which has the mark too."""
ENDS = 600
"""Seconds after which they end by themselves, whatever becomes of the test."""

_SHELL = re.compile(rb"(\S*/)?sh\0")
_numbers = itertools.count()


@attrs.frozen
class Brood:
    mark: str

    @property
    def flags(self) -> tuple[str, str]:
        return "--brood", self.mark

    def alive(self) -> list[int]:
        """Also the servers that have started them."""
        return [pid for pid, line in commands() if self.mark.encode() in line.split(b"\0")]

    def is_hidden(self, servers: int = 1) -> bool:
        """All that so many servers leave behind is there, and nobody else any more."""
        lines = [line for _, line in commands() if self.mark.encode() in line.split(b"\0")]
        return len(lines) >= servers * FAMILY and not any(map(_SHELL.match, lines))


def commands() -> Iterator[tuple[int, bytes]]:
    """Of all processes; none of those that have ended and that nobody has waited for."""
    for folder in PROC.glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if line:
            yield int(folder.name), line


def helpers(daemon: int) -> list[int]:
    """The reapers that are children of that process."""
    found = []
    for pid, line in commands():
        if any(part.endswith(b"/backend/children/lifeline.py") for part in line.split(b"\0")):
            try:
                stat = (PROC / str(pid) / "stat").read_text(errors="replace")
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == daemon:
                found.append(pid)
    return found


def is_alive(pid: int) -> bool:
    """Not one that is only waited for."""
    return any(pid == one for one, _ in commands())


@contextmanager
def open_brood() -> Iterator[Brood]:
    """Whoever leaves by an exception leaves none of them behind either."""
    brood = Brood(f"{ENDS}.{os.getpid()}0{next(_numbers):04}")
    try:
        yield brood
    finally:
        while left := brood.alive():
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
