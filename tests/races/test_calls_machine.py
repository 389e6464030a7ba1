"""The calls of a session against a table of what each may have become: one fate each, told once."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs
import trio
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from emceepee_trio.errors import ExecutionFailed, LimitReached, NotFound, TimedOut, ToolError
from emceepee_trio.journal import Journal
from emceepee_trio.model.states import CallState, TaskState
from emceepee_trio.session.calls.call import Call
from parts import Peer, World, open_calls
from replay import Replay
from trio_machine import TrioMachine

CALLS, TASKS, KEPT = 4, 3, 12
"""Limits, and the seconds a finished task is kept."""

OPEN = {"in_flight", "working"}
FATES = {"returned_result": TaskState.COMPLETED, "returned_error": TaskState.FAILED}
"""Of calls that were no tasks; one that was cancelled is so, task or not."""


@attrs.define(eq=False)
class Record:
    """What the model knows of a call."""

    call: Call
    peer: Peer
    waits_until: float
    """When its request has waited long enough."""
    fate: str = "in_flight"
    expires: float = math.inf
    over: float = math.inf
    asked: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    got: Any = None
    """What its request was told, or the error."""

    def observed(self) -> str:
        """What has become of it, as the calls have it."""
        if self.call.task is not None:
            return self.call.task.status.value
        return "in_flight" if self.call.state is CallState.IN_FLIGHT else self.call.state.value


class Rivals(TrioMachine):
    def __init__(self) -> None:
        self.now = 0.0
        self.records: list[Record] = []
        self.replay = Replay()
        super().__init__()

    def world(self) -> AbstractAsyncContextManager[object]:
        @asynccontextmanager
        async def opened() -> AsyncGenerator[None]:
            journal = Journal(lambda: self.now)
            self.replay.reads(journal)
            async with open_calls(
                journal, calls=CALLS, tasks=TASKS, finished_task_ms=KEPT * 1000
            ) as self.calls:
                yield

        return opened()

    calls: World

    def are(self, *fates: str) -> list[Record]:
        return [record for record in self.records if record.fate in fates]

    def choose(self, data: st.DataObject, *fates: str) -> Record:
        return data.draw(st.sampled_from(self.are(*fates)))

    def becomes(self, record: Record, *fates: str) -> None:
        """Something has happened to it: it has become one of these, and hears no more."""
        record.fate = record.observed()
        assert record.fate in fates
        if record.fate == "working":
            record.expires = self.now + record.call.ttl
        else:
            record.over = self.now

    @rule(
        patience=st.integers(0, 6),
        ttl=st.integers(1, 8),
        hard=st.none() | st.integers(1, 12),
    )
    def begin(self, patience: int, ttl: int, hard: int | None) -> None:
        peer = Peer()
        how = {"patience": patience, "ttl": ttl, "hard_timeout": hard or math.inf}
        refused = len(self.are("in_flight")) >= CALLS or (
            patience == 0 and len(self.are("working")) >= TASKS
        )

        async def request(record: Record) -> None:
            with record.asked:
                try:
                    record.got = await self.calls.calls.wait(record.call, float(patience))
                except ToolError as error:
                    record.got = error

        def act() -> Record | None:
            try:
                call = self.calls.begin(peer, **how)
            except LimitReached:
                return None
            record = Record(call, peer, self.now + patience)
            self.calls.nursery.start_soon(request, record)
            return record

        record = self.do_sync(act)
        assert (record is None) == refused
        assert refused == (peer.call is None)  # unsent
        if record is not None:
            self.records.append(record)
            if patience == 0:
                self.becomes(record, "working")

    @precondition(lambda self: self.are("in_flight", "working"))
    @rule(data=st.data(), succeeds=st.booleans())
    def the_backend_answers(self, data: st.DataObject, succeeds: bool) -> None:
        record = self.choose(data, "in_flight", "working")
        answer: Callable[[], object] = (
            (lambda: record.peer.answer.set({"content": []}))
            if succeeds
            else (lambda: record.peer.answer.fail(ExecutionFailed("no")))
        )
        self.do_sync(answer)
        if record.fate == "working":
            self.becomes(record, "completed" if succeeds else "failed")
        else:
            self.becomes(record, "returned_result" if succeeds else "returned_error")

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def somebody_cancels_a_task(self, data: st.DataObject) -> None:
        record = data.draw(st.sampled_from(self.records))

        def act() -> bool | None:
            try:
                return self.calls.calls.cancel(record.call.id)[0]
            except NotFound:
                return None

        won = self.do_sync(act)
        if record.call.task is None or self.now >= record.over + KEPT:
            assert won is None
        else:
            assert won is (record.fate == "working")
            if won:
                self.becomes(record, "cancelled")

    @precondition(lambda self: self.are("in_flight"))
    @rule(data=st.data())
    def a_request_is_cancelled(self, data: st.DataObject) -> None:
        record = self.choose(data, "in_flight")
        self.do_sync(record.asked.cancel)
        self.becomes(record, "cancelled")

    @precondition(lambda self: self.are("in_flight"))
    @rule(data=st.data())
    def a_client_gives_up_waiting(self, data: st.DataObject) -> None:
        record = self.choose(data, "in_flight")

        def act() -> None:
            try:
                self.calls.calls.promote(record.call)
            except LimitReached:
                pass
            record.asked.cancel()

        full = len(self.are("working")) >= TASKS
        self.do_sync(act)
        self.becomes(record, "cancelled" if full else "working")

    @rule(seconds=st.integers(1, 6))
    def time_passes(self, seconds: int) -> None:
        for _ in range(seconds):
            self.pass_time(1)
            self.now += 1
            for record in self.records:
                may_become = self.due(record)
                if may_become:
                    self.becomes(record, *may_become)

    def due(self, record: Record) -> set[str]:
        """What it may become now; rivals that meet in one tick may both win."""
        fates: set[str] = set()
        if record.fate == "in_flight":
            if record.call.hard_end <= self.now:
                fates |= {"returned_error"}
            if record.waits_until <= self.now:
                # Others may have taken the last place, or left one, in this very tick.
                fates |= {"working", "cancelled"}
            if len(fates) == 3:
                fates |= {"failed"}  # promoted, and out of time
        elif record.fate == "working":
            if record.expires <= self.now:
                fates |= {"expired"}
            if record.call.hard_end <= self.now:
                # Of a call that is over for both reasons, the harder is told.
                fates = {"failed"}
        return fates

    @invariant()
    def every_fate_is_what_it_was(self) -> None:
        for record in self.records:
            assert record.observed() == record.fate

    @invariant()
    def what_was_noted_says_the_same(self) -> None:
        def ids(*fates: str) -> set[tuple[str, str]]:
            return {("s", record.call.id) for record in self.are(*fates)}

        replay = self.replay
        replay.check()
        assert replay.in_flight == ids("in_flight")
        assert replay.working == ids("working")
        assert replay.fates == {
            ("s", record.call.id): FATES.get(record.fate) or TaskState(record.fate)
            for record in self.records
            if record.fate not in OPEN
        }
        assert replay.kept == {("s", call.id) for call in self.calls.calls.finished}

    @invariant()
    def every_fate_is_told_once(self) -> None:
        told: dict[str, list[str]] = {}
        types = self.calls.told.types
        for (_, happening), event_type in zip(self.calls.told.said, types, strict=True):
            told.setdefault(getattr(happening, "task_id", ""), []).append(event_type)
        for record in self.records:
            expected = []
            if record.call.task is not None:
                expected = ["task_created", f"task_{record.fate}"][: 2 - (record.fate in OPEN)]
            assert told.pop(record.call.id, []) == expected
        assert told == {}

    @invariant()
    def requests_and_backends_were_told_the_same(self) -> None:
        for record in self.records:
            call, peer, got = record.call, record.peer, record.got
            assert call.slot.is_settled == (record.fate not in OPEN)
            # The backend of a call that is over has answered, or was told to stop.
            assert (peer.returned or peer.cancelled or peer.answer.error is not None) == (
                record.fate not in OPEN
            )
            if call.slot.is_settled and call.slot.error is None:
                assert peer.returned
            if got is None or record.asked.cancel_called:
                assert record.asked.cancel_called or record.fate == "in_flight"
            elif record.fate == "returned_result":
                assert got is call.slot.peek()
            elif record.fate == "returned_error":
                assert got is call.slot.error
                assert isinstance(got, TimedOut | ExecutionFailed)
            elif call.task is None:
                assert record.fate == "cancelled"
                assert isinstance(got, LimitReached)
            else:
                assert got is call.task

    @invariant()
    def no_limit_is_exceeded(self) -> None:
        assert len(self.are("in_flight")) <= CALLS
        assert len(self.are("working")) <= TASKS
        assert self.calls.calls.working() == [r.call.task for r in self.are("working")]

    @invariant()
    def what_is_over_is_kept_and_then_forgotten(self) -> None:
        kept = [
            record.call.id
            for record in self.records
            if record.fate in OPEN
            or (record.call.task is not None and self.now < record.over + KEPT)
        ]
        assert list(self.calls.calls._calls) == kept
        # One task for each call that is open, one for each request that waits, and the sweeper.
        open_calls = len(self.are(*OPEN))
        assert len(self.calls.nursery.child_tasks) == open_calls + len(self.are("in_flight")) + 1


TestRivals = Rivals.TestCase
