from __future__ import annotations

import attrs

from emceepee_trio.logs.frequency import AT_MOST, EVERY, MOST, Line, Often


@attrs.define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def add(kinds: Often, count: int = 1, session: str = "s", **latest: object) -> list[Line]:
    return kinds.add("warn", "lost", {"count": count}, latest, {"session": session})


def line(count: int, session: str = "s", **latest: object) -> Line:
    return ("warn", "lost", {"session": session, **latest, "count": count})


def test_the_first_is_told_now_and_the_others_together_once_a_minute() -> None:
    clock = Clock()
    kinds = Often(clock)
    assert add(kinds, 5) == [line(5)]
    clock.now = EVERY - 1
    assert [add(kinds) for _ in range(1000)] == [[]] * 1000
    assert kinds.next_due() == 1
    assert kinds.flush() == []
    clock.now = EVERY
    assert kinds.next_due() == 0
    assert kinds.flush() == [line(1000)]
    assert add(kinds) == []
    clock.now = 2 * EVERY + 1
    assert add(kinds) == [line(2)]


def test_what_has_stopped_is_forgotten_and_begins_anew() -> None:
    clock = Clock()
    kinds = Often(clock)
    add(kinds)
    clock.now = EVERY
    assert kinds.flush() == []
    assert kinds.next_due() is None
    assert add(kinds) == [line(1)]


def test_at_the_end_nothing_is_kept_back() -> None:
    kinds = Often(Clock())
    add(kinds)
    add(kinds, 2)
    assert kinds.flush(everything=True) == [line(2)]
    assert kinds.flush(everything=True) == []


def test_kinds_have_lines_of_their_own_and_of_the_rest_the_latest_counts() -> None:
    clock = Clock()
    kinds = Often(clock)
    assert add(kinds, session="one", why="a") == [line(1, "one", why="a")]
    assert add(kinds, session="two", why="a") == [line(1, "two", why="a")]
    add(kinds, session="one", why="b")
    add(kinds, session="one", why="c")
    clock.now = EVERY
    assert kinds.flush() == [line(2, "one", why="c")]


def test_who_invents_kinds_gets_no_more_lines_for_it() -> None:
    kinds = Often(Clock())
    told = sum(len(add(kinds, session=str(n))) for n in range(MOST + 500))
    assert told == MOST + 1
    assert sum(fields["count"] for _, _, fields in kinds.flush(everything=True)) == 499


def test_of_any_event_only_so_many_are_written_in_a_minute() -> None:
    clock = Clock()
    kinds = Often(clock)
    assert [kinds.allows("a") for _ in range(AT_MOST + 2)] == [True] * AT_MOST + [False] * 2
    assert kinds.allows("b")
    clock.now = EVERY
    assert kinds.allows("a")
