"""Which facts go first, where there is no room for all: those of what has been over the longest.

Of what is not over nothing goes, nor of what it still depends on: a call that has been waiting for
hours is what somebody looks for.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ..facts import CallBegun, Fact, SessionEnded, SessionNamed, SessionOpened
from .replay import Timeline
from .rows import Row

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
    """Each row, and since when nothing needs it any more.

    A question is needed by the calls that it was of, and a connection by those that it was there
    for: what they have waited for is not to change. The last one of a server says that the next one
    is not the first.
    """
    rows = timeline.rows.values()
    last = {row.server: row for row in rows if row.kind == "connection"}
    begun: dict[str, list[float]] = defaultdict(list)
    until: dict[str, list[float]] = defaultdict(list)
    """When each call of a server began, and when it and all before it are over."""
    for row in rows:
        if row.kind == "call":
            begun[row.server].append(row.begins)
            until[row.server].append(max([_ends(row), *until[row.server][-1:]]))

    def over(row: Row) -> float:
        own = _ends(row)
        match row.kind:
            case "question":
                calls = (timeline.get("call", each) for each in timeline.concerned.get(row.id, ()))
                return max([own, *(_ends(call) for call in calls if call is not None)])
            case "connection":
                before = bisect_right(begun[row.server], own)
                return max([own, *until[row.server][max(before - 1, 0) : before]])
        return own

    found = [(over(row), row) for row in rows if last.get(row.server) is not row]
    return sorted(found, key=lambda pair: (pair[0], pair[1].kind != "call"))


def _ends(row: Row) -> float:
    return math.inf if row.ends is None else row.ends
