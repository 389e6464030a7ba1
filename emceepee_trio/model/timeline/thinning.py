"""Which facts go first, where there is no room for all: those of what has been over the longest.

Of what is not over nothing goes, nor of what it still depends on: a call that has been waiting for
hours is what somebody looks for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ..facts import CallBegun, Fact, SessionEnded, SessionNamed, SessionOpened
from .rows import Row, Timeline

OF_SESSIONS = (SessionOpened, SessionNamed, SessionEnded)
"""Facts that stay."""
HEFT = 256
"""Bytes that one fact takes, about; one with long names counts as several."""


def heft(fact: Fact) -> int:
    """In facts of usual length. The name is that of all facts of its call."""
    return 1 + len(fact.tool) // HEFT if isinstance(fact, CallBegun) else 1


def heft_of(noted: Iterable[Fact]) -> int:
    return sum(map(heft, noted))


def thinned(noted: Sequence[Fact], most: int) -> list[Fact]:
    """At most that heft of them."""
    timeline = Timeline.of(noted)
    left = heft_of(noted)
    gone: set[int] = set()
    for over, row in _oldest_first(timeline):
        if left <= most or over == math.inf:
            break
        theirs = [fact for fact in row.facts if id(fact) not in gone]
        gone.update(map(id, theirs))
        left -= heft_of(theirs)
    kept = [fact for fact in noted if id(fact) not in gone]
    return kept if left <= most else _newest(kept, most)


def _newest(noted: Sequence[Fact], most: int) -> list[Fact]:
    """More is under way than there is room for: what was noted last says how it stands."""
    head = {type(fact): fact for fact in noted if isinstance(fact, OF_SESSIONS)}
    room = most - len(head)
    tail: list[Fact] = []
    for fact in reversed(noted):
        if not isinstance(fact, OF_SESSIONS):
            room -= heft(fact)
            if room < 0:
                break
            tail.append(fact)
    return [*head.values(), *reversed(tail)]


def _oldest_first(timeline: Timeline) -> list[tuple[float, Row]]:
    """Each row, and since when nothing needs it any more."""
    rows = timeline.rows.values()
    # The last of each server says that the next one is not the first.
    last = {row.server: row for row in rows if row.kind == "connection"}
    found = [(_over(timeline, row), row) for row in rows if last.get(row.server) is not row]
    return sorted(found, key=lambda pair: pair[0])


def _over(timeline: Timeline, row: Row) -> float:
    calls = [timeline.get("call", name) for name in timeline.concerned.get(row.id, ())]
    ends = [each.ends for each in (row, *calls) if each is not None]
    return max(math.inf if end is None else end for end in ends)
