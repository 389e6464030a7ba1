"""What is kept of each session: always what is under way, of the rest what there is room for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model import facts
from emceepee_trio.model.facts import Fact
from emceepee_trio.model.states import QuestionState, TaskState
from emceepee_trio.model.timeline.records import ENDED, MAX_ENDED, Records
from emceepee_trio.model.timeline.replay import Timeline
from emceepee_trio.model.timeline.rows import Row
from emceepee_trio.model.timeline.thinning import HEFT, heft_of, thinned

S = "session"


@attrs.define(eq=False)
class Storyteller:
    """Notes what could have been, a moment after the other, as it is told by numbers."""

    session: str = S
    noted: list[Fact] = attrs.field(factory=list)
    calls: list[str] = attrs.field(factory=list)
    questions: list[str] = attrs.field(factory=list)
    links: list[int] = attrs.field(factory=list)

    def note(self, kind: Callable[..., Fact], *args: object) -> None:
        self.noted.append(kind(float(len(self.noted)), self.session, *args))

    def do(self, number: int) -> None:
        name, which = f"n{len(self.noted)}", number // 8
        match number % 8:
            case 0 | 1:
                self.calls.append(name)
                self.note(facts.CallBegun, name, "git", "log", True, 9, None)
            case 2 if self.calls:
                self.note(facts.CallSent, self.calls[which % len(self.calls)])
            case 3 if self.calls:
                gone = self.calls.pop(which % len(self.calls))
                end = TaskState.COMPLETED, False, 5, None
                self.note(facts.CallSettled, gone, "git", "log", *end)
            case 4 if self.calls:
                of = self.calls[which % len(self.calls)]
                self.questions.append(name)
                self.note(facts.QuestionOpened, name, "sampling", "git", of, 9)
                self.note(facts.CallAsked, of, name)
            case 5 if self.questions:
                gone = self.questions.pop(which % len(self.questions))
                how = QuestionState.COMPLETED, "answered", 5
                self.note(facts.QuestionClosed, gone, "sampling", "git", *how)
            case 6:
                self.links.append(len(self.noted))
                self.note(facts.ConnectionTrying, "git", self.links[-1])
                self.note(facts.ConnectionUp, "git", self.links[-1])
            case 7 if self.links:
                gone_link = self.links.pop(which % len(self.links))
                self.note(facts.ConnectionLost, "git", gone_link, False)
                self.note(facts.ConnectionEnded, "git", gone_link)


def told(numbers: Sequence[int], session: str = S) -> list[Fact]:
    teller = Storyteller(session)
    teller.note(facts.SessionOpened, "local")
    for number in numbers:
        teller.do(number)
    return teller.noted


stories = st.lists(st.integers(0, 63), max_size=60).map(told)


def shape(row: Row) -> tuple[object, ...]:
    spans = [attrs.astuple(span) for span in row.spans]
    return (row.kind, row.id, row.begins, row.ends, row.outcome, row.phase, spans, row.facts)


def needed(timeline: Timeline) -> list[Row]:
    """What is under way, and what it depends on."""
    rows = timeline.rows.values()
    open_ = [row for row in rows if row.ends is None]
    theirs = {question for row in open_ for question in questions_of(row)}
    links = [row for row in rows if row.kind == "connection"]
    since = min((row.begins for row in open_ if row.kind == "call"), default=math.inf)
    used = [row for row in links if row.ends is None or row.ends >= since] + links[-1:]
    return [row for row in rows if row in open_ or row.id in theirs or row in used]


def questions_of(row: Row) -> set[str]:
    return {fact.question for fact in row.facts if isinstance(fact, facts.CallAsked)}


@given(noted=stories, most=st.integers(1, 80))
def test_what_is_thinned_out_is_what_has_been_over_the_longest(
    noted: list[Fact], most: int
) -> None:
    before, after = Timeline.of(noted), Timeline.of(left := thinned(noted, most))
    assert len(left) <= most
    assert [fact for fact in noted if fact in left] == left  # in the same order
    stay = needed(before)
    if 1 + len({id(fact) for row in stay for fact in row.facts}) > most:
        return  # there is no room even for these
    assert all(after.get(row.kind, row.id) is not None for row in stay)
    for row in after.rows.values():
        assert shape(row) == shape(before.rows[row.kind, row.id])
    if len(left) < len(noted):
        gone = [row for row in before.rows.values() if row.kind == "call" and not has(after, row)]
        kept = [row for row in after.rows.values() if row.kind == "call" and row.ends is not None]
        assert max((row.ends or 0 for row in gone), default=0) <= min(
            (row.ends or 0 for row in kept), default=math.inf
        )


def has(timeline: Timeline, row: Row) -> bool:
    return timeline.get(row.kind, row.id) is not None


def test_what_a_call_has_waited_for_stays_as_long_as_the_call() -> None:
    # A call that is sent and asks; then a hundred others come and go.
    noted = told([6, 0, 2, 4, 5, *[0, 11] * 100])
    (row,) = [row for row in Timeline.of(thinned(noted, 20)).rows.values() if row.id == "n3"]
    assert [span.phase for span in row.spans] == ["preparation", "server", "question", "server"]


def test_where_more_is_under_way_than_there_is_room_for_the_newest_stays() -> None:
    noted = told([0] * 9)
    assert thinned(noted, 4) == [noted[0], *noted[-3:]]


def reading(records: Records) -> Journal:
    journal = Journal(lambda: 0.0)
    for read, kinds in records.readers():
        journal.add(Reader("timeline", read, kinds))
    return journal


def play(records: Records, noted: Sequence[Fact]) -> None:
    by_kind = {kind: read for read, kinds in records.readers() for kind in kinds}
    for fact in noted:
        by_kind[type(fact)](fact)


def test_what_is_noted_is_kept_by_session() -> None:
    records = Records(100, 1000)
    journal = reading(records)
    for session in "ab":
        journal.note(facts.SessionOpened, session, "local")
    journal.note(facts.CallBegun, "a", "c", "git", "log", True, 9, None)
    journal.note(facts.DeliveryMade, "a", 1, 1, 0, 0)
    a, b = records
    assert [type(fact) for fact in a.noted] == [facts.SessionOpened, facts.CallBegun]
    assert [type(fact) for fact in b.noted] == [facts.SessionOpened]
    assert a.timeline.rows["call", "c"].phase == "connection"


def test_where_there_is_to_be_no_record_nothing_is_read() -> None:
    assert list(Records(0, 1000).readers()) == []


@given(
    stories=st.lists(st.lists(st.integers(0, 63), max_size=60), min_size=1, max_size=5),
    most=st.integers(10, 40),
    in_all=st.integers(30, 90),
)
def test_there_is_no_more_than_there_is_room_for_and_what_is_not_there_is_counted(
    stories: list[list[int]], most: int, in_all: int
) -> None:
    records = Records(most, in_all)
    all_of_it = [told(numbers, f"s{n}") for n, numbers in enumerate(stories)]
    for noted in all_of_it:
        play(records, noted)
        assert records.heft <= in_all
    for noted, record in zip(all_of_it, records, strict=True):
        assert record.heft == heft_of(record.noted) <= most
        assert record.dropped + len(record.noted) == len(noted)
    assert records.heft == sum(record.heft for record in records)
    assert records.dropped == sum(record.dropped for record in records)


def test_a_quiet_session_keeps_what_it_has_beside_a_loud_one() -> None:
    records = Records(1000, 100)
    play(records, quiet := told([0, 2], "quiet"))
    for n in range(20):
        play(records, told([0, 3] * 10, f"loud{n}")[1:] if n else told([0, 3] * 10, "loud0"))
    play(records, told([0, 3] * 200, "loud"))
    assert next(iter(records)).noted == quiet


def test_a_call_that_waits_for_hours_is_there_however_much_comes_after_it() -> None:
    records = Records(100, 1000)
    play(records, told([0, 2, *[0, 11] * 500]))
    (record,) = records
    first = record.timeline.rows["call", "n1"]
    assert (first.begins, first.phase) == (1, "server")
    assert record.dropped > 800


def test_a_name_that_is_long_counts_as_many_facts() -> None:
    records = Records(100, 1000)
    play(records, [facts.SessionOpened(0, S, "local")])
    play(records, [facts.CallBegun(1, S, "c", "git", "x" * 50 * HEFT, True, 9, None)])
    assert records.heft == 52
    play(records, [facts.CallBegun(2, S, "d", "git", "x" * 60 * HEFT, True, 9, None)])
    assert records.heft <= 100
    play(records, [facts.CallBegun(3, S, "e", "git", "x" * 1000 * HEFT, True, 9, None)])
    assert records.heft <= 100


def ended(session: str, at: float) -> Fact:
    return facts.SessionEnded(at, session, "over")


def test_a_session_that_has_ended_is_kept_for_a_while_with_what_was_noted_after_it() -> None:
    records = Records(100, 1000)
    play(records, [*told([0]), ended(S, 10)])
    late = facts.CallSettled(11, S, "n1", "git", "log", TaskState.CANCELLED, False, 0, None)
    play(records, [late])
    (record,) = records
    assert (record.ended_at, record.noted[-1]) == (10, late)
    play(records, [facts.SessionOpened(10 + ENDED - 1, "other", "local")])
    assert records.get(S) is not None
    play(records, [facts.SessionOpened(10 + ENDED, "another", "local")])
    assert records.get(S) is None
    play(records, [late])  # of what is forgotten
    assert records.heft == 2


def test_a_session_that_did_nothing_is_a_number() -> None:
    records = Records(100, 1000)
    play(records, [*told([6, 7]), ended(S, 10)])
    assert (list(records), records.idle, records.heft) == ([], 1, 0)


def test_so_many_that_have_ended_and_where_there_is_no_room_they_go_first() -> None:
    records = Records(1000, 300)
    for n in range(MAX_ENDED + 1):
        play(records, [*told([0], f"s{n}"), ended(f"s{n}", n)])
    assert [record.id for record in records] == [f"s{n}" for n in range(1, MAX_ENDED + 1)]
    assert records.heft == 3 * MAX_ENDED
    play(records, told([0] * 148, "living"))
    assert len(list(records)) == 51
    assert next(iter(records)).id == "living"
    assert next(iter(records)).dropped == 0


def test_a_session_of_a_name_that_was_there_before_begins_anew() -> None:
    records = Records(100, 1000)
    play(records, [*told([0]), ended(S, 10), facts.SessionOpened(20, S, "local")])
    (record,) = records
    assert (record.ended_at, len(record.noted), records.heft) == (None, 1, 1)
