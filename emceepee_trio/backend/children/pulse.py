"""Whether a program still works: it, or what it has started, uses the processor or writes.

Read from /proc, where there is one. Knows neither why somebody asks nor how long is long.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from pathlib import Path

import attrs

TREE = 64
"""Processes that are looked at; a program that starts more of them works anyway."""
THREADS = 64
"""Of each, whose children are looked at."""
TICKS = 2
"""Of processor time that count as work, each a hundredth of a second; waiting takes less."""

_PROC = Path("/proc")
_AT_WORK = {b"R", b"D"}
"""It runs, or would if the machine had time for it; or it waits for a disk."""


@attrs.frozen
class _Look:
    """At a process and its descendants."""

    pids: frozenset[int]
    ticks: int
    written: int
    is_at_work: bool


def _look(root: int) -> _Look:
    """What cannot be read, since it has just ended or is somebody else's, counts for nothing."""
    tree, ticks, written, is_at_work = [root], 0, 0, False
    for pid in tree:  # which grows meanwhile
        folder = _PROC / str(pid)
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            is_at_work |= fields[0] in _AT_WORK
            ticks += sum(map(int, fields[11:15]))  # its own, and of children that have ended
            for thread in islice((folder / "task").iterdir(), THREADS):
                found = (thread / "children").read_bytes().split()
                tree += map(int, found[: max(0, TREE - len(tree))])
            written += int((folder / "io").read_bytes().partition(b"\nwchar: ")[2].split()[0])
    return _Look(frozenset(tree), ticks, written, is_at_work)


@attrs.define(eq=False)
class Pulse:
    """Of one program, from one look to the next."""

    _last: _Look | None = attrs.field(default=None, init=False)
    """At which it had done something."""

    def beats(self, pid: int, heard: int) -> bool:
        """Whether it has done something since; *heard* is how many bytes we have read of it."""
        now, last = _look(pid), self._last
        now = attrs.evolve(now, written=now.written + heard)
        if (
            last is not None
            and not now.is_at_work
            and (now.pids, now.written) == (last.pids, last.written)
            and now.ticks - last.ticks < TICKS
        ):
            return False
        self._last = now
        return True
