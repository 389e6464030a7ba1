"""What is noted reaches each reader who wants it, at once and in order, and costs nobody else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model import facts
from emceepee_trio.model.facts import CallSent, Fact, SessionEnded, SessionOpened

KINDS = (SessionOpened, SessionEnded)


def at_noon() -> float:
    return 12.0


@attrs.define(eq=False)
class Seen:
    """A reader's memory, which fails as it is told."""

    fails_at: frozenset[int] = frozenset()
    told: list[Fact] = attrs.field(factory=list)

    def read(self, fact: Fact) -> None:
        self.told.append(fact)
        if len(self.told) in self.fails_at:
            raise ValueError(len(self.told))


def reader(read: Callable[[Any], object], *kinds: type[Fact]) -> Reader:
    return Reader("a test", read, kinds)


def test_a_fact_says_when_and_of_which_session() -> None:
    journal, seen = Journal(at_noon), Seen()
    with journal.reading(reader(seen.read, *KINDS)):
        journal.note(SessionOpened, "s", "us")
        journal.note(SessionEnded, "s", "over")
    assert seen.told == [SessionOpened(12.0, "s", "us"), SessionEnded(12.0, "s", "over")]


def test_a_reader_hears_of_what_it_wants_while_it_reads() -> None:
    journal, seen = Journal(at_noon), Seen()
    journal.note(SessionEnded, "s", "before")
    with journal.reading(reader(seen.read, SessionEnded)):
        journal.note(SessionOpened, "s", "us")
        journal.note(SessionEnded, "s", "meanwhile")
    journal.note(SessionEnded, "s", "after")
    assert seen.told == [SessionEnded(12.0, "s", "meanwhile")]


def test_what_nobody_wants_is_not_made() -> None:
    def clock() -> float:
        raise AssertionError("nobody has asked")

    journal = Journal(clock)
    with journal.reading(reader(Seen().read, SessionEnded)):
        journal.note(SessionOpened, "s", "us")
    journal.note(SessionEnded, "s", "over")


@given(
    fails_at=st.lists(st.frozensets(st.integers(1, 9)), min_size=1, max_size=4),
    calls=st.lists(st.sampled_from("abc"), max_size=8),
)
def test_a_reader_that_raises_costs_nobody_anything(
    fails_at: list[frozenset[int]], calls: list[str]
) -> None:
    journal = Journal(at_noon)
    memories = [Seen(each) for each in fails_at]
    readers = [reader(memory.read, CallSent) for memory in memories]
    for each in readers:
        journal.add(each)
    for call in calls:
        journal.note(CallSent, "s", call)
    for memory, each in zip(memories, readers, strict=True):
        assert memory.told == [CallSent(12.0, "s", call) for call in calls]
        assert each.failures == len([at for at in memory.fails_at if at <= len(calls)])


def test_what_a_reader_raises_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "emceepee_trio")
    journal, seen = Journal(at_noon), Seen(frozenset({2, 3}))
    with journal.reading(reader(seen.read, SessionOpened)) as it:
        for _ in range(4):
            journal.note(SessionOpened, "s", "us")
    (line,) = caplog.records
    assert (line.message, line.fields) == ("reader_crashed", {"reader": "a test"})  # type: ignore[attr-defined]  # logs puts it there
    assert line.exc_info is not None
    assert it.failures == 2


def test_a_reader_that_notes_something_has_failed_and_the_others_keep_their_order() -> None:
    journal, seen = Journal(at_noon), Seen()
    restless = reader(lambda fact: journal.note(SessionEnded, "s", "for that"), *KINDS)
    with journal.reading(restless), journal.reading(reader(seen.read, *KINDS)):
        journal.note(SessionOpened, "s", "us")
        journal.note(SessionOpened, "t", "us")
    assert seen.told == [SessionOpened(12.0, "s", "us"), SessionOpened(12.0, "t", "us")]
    assert restless.failures == 2


def test_a_reader_may_come_and_go_as_it_reads() -> None:
    journal, seen = Journal(at_noon), Seen()
    other = reader(seen.read, SessionOpened)

    def swap(fact: Fact) -> None:
        journal.remove(it)
        journal.add(other)

    it = reader(swap, SessionOpened)
    journal.add(it)
    journal.note(SessionOpened, "s", "us")
    assert (seen.told, it.failures) == ([], 0)  # it came after that
    journal.note(SessionOpened, "t", "us")
    assert seen.told == [SessionOpened(12.0, "t", "us")]
    journal.remove(other)
    journal.note(SessionOpened, "u", "us")
    assert len(seen.told) == 1


def test_what_has_no_id_gets_a_number_of_its_own() -> None:
    journal = Journal(at_noon)
    assert journal.number() != journal.number()


def test_no_fact_has_room_for_what_others_wrote() -> None:
    """Names, ids, sizes, states; nothing that could hold arguments, a result or headers."""
    kinds = [kind for kind in vars(facts).values() if isinstance(kind, type) and attrs.has(kind)]
    assert len(kinds) > 20
    small = {"str", "str | None", "int", "int | None", "float", "bool", "int | str | None"}
    small |= {"Kind", "Closing", "TaskState", "QuestionState", "TimerStatus", "Unanswerable"}
    for kind in kinds:
        assert {field.type for field in attrs.fields(kind)} <= small
        assert issubclass(kind, Fact)
        assert kind.__setattr__ is not object.__setattr__  # frozen
