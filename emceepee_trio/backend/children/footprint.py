"""What programs take of the machine: how many processes each has become, and their memory.

Read from /proc, where there is one, in a single walk for all that are asked for, and by a thread:
it takes as long as there are processes on the machine. Pages that several processes share are
counted in each, and a process that has left its parent is not found. Knows no child of ours.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

import attrs

from ...waits.disk import on_disk

_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _PAGES = 1, 21
"""Fields of a ``stat``, counted from behind the name of the program."""


@attrs.frozen
class Footprint:
    """Of a process and its descendants."""

    processes: int
    resident: int
    """Bytes in memory."""

    def to_json(self) -> dict[str, int]:
        return {"processes": self.processes, "resident_bytes": self.resident}


async def footprints(pids: Collection[int]) -> Mapping[int, Footprint]:
    """Of those that there are; of none where nobody can say."""
    if not pids:
        return {}
    return await on_disk(partial(look, frozenset(pids)))


def look(pids: Collection[int], proc: Path = _PROC) -> Mapping[int, Footprint]:
    """The same, by whoever may wait."""
    sizes: dict[int, int] = {}
    started: defaultdict[int, list[int]] = defaultdict(list)
    for folder in _entries(proc):
        try:
            # Its own name may have spaces and brackets in it.
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            sizes[int(folder.name)] = int(fields[_PAGES]) * _PAGE
            started[int(fields[_PARENT])].append(int(folder.name))
        except (OSError, IndexError, ValueError):
            pass  # it has just ended
    return {pid: _of_tree(pid, sizes, started) for pid in pids if pid in sizes}


def _entries(proc: Path) -> list[Path]:
    try:
        return [each for each in proc.iterdir() if each.name.isdecimal()]
    except OSError:
        return []


def _of_tree(root: int, sizes: Mapping[int, int], started: Mapping[int, list[int]]) -> Footprint:
    # Read one after the other: a number that was used again meanwhile could be its own ancestor.
    tree, waiting = {root}, [root]
    while waiting:
        new = set(started.get(waiting.pop(), ())) - tree
        tree |= new
        waiting += new
    return Footprint(len(tree), sum(sizes[pid] for pid in tree))
