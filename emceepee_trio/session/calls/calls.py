"""Tool calls that may outlive the request that made them.

A call runs in the session's nursery under a cancel scope of its own; its request waits for the
call's slot. If the wait ends first the call becomes a task: its deadline moves, and from then on
the client reaches it by its id. The slot decides every fate; deadlines and cancellations only wake.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import attrs
import trio

from ...config import Limits
from ...errors import (
    ExecutionFailed,
    InternalError,
    LimitReached,
    NotFound,
    SessionGone,
    ToolError,
)
from ...journal import Journal
from ...model import facts
from ...model.events import Happening
from ...model.json.weight import weigh
from ...model.states import CALL, CallState, TaskState, step
from ...model.wire import timestamp
from ...waits.firewall import Firewall, begin
from .call import Call, Result, Send, Task
from .finished import Finished
from .outcomes import expired, explained, gone, overdue, status_message
from .places import Places
from .working import Working


@attrs.define(eq=False)
class Calls:
    """All calls of one session."""

    limits: Limits
    nursery: trio.Nursery
    publish: Callable[[str, Happening], object]
    new_id: Callable[[], str]
    wall: Callable[[], float]
    on_kept: Callable[[float], None]
    """Something is kept until then, on trio's clock."""
    session_id: str
    journal: Journal = attrs.field(factory=Journal)
    _calls: dict[str, Call] = attrs.field(factory=dict, init=False)
    """In flight, working, and finished but kept; in the order of their making."""
    # Of these, so that no request has to look at all that is kept:
    places: Places = attrs.field(init=False)
    """Those in flight."""
    _working: Working = attrs.field(init=False)
    finished: Finished = attrs.field(init=False)
    """Tasks whose fate is decided."""

    def __attrs_post_init__(self) -> None:
        self.places = Places(self.limits)
        self._working = Working(self.limits, self.session_id, self.journal, self.publish, self.wall)
        self.finished = Finished(
            self.limits, self.session_id, self.journal, self.on_kept, self._calls.pop
        )

    def begin(
        self,
        server: str,
        tool: str,
        args: Mapping[str, Any],
        send: Send,
        *,
        patience: float,
        ttl: float,
        hard_timeout: float = math.inf,
        overdue: Callable[[], ToolError] | None = None,
        within: Call | None = None,
    ) -> Call:
        """Start the call; *patience* is what its request is going to wait.

        *overdue* is what it fails with after *hard_timeout*. One that a script makes is *within*
        the script's own.
        """
        if within is not None and (within.slot.is_settled or within.scope.cancel_called):
            raise ExecutionFailed("the script has ended; it makes no call any more")
        if self.nursery.cancel_scope.cancel_called:
            raise SessionGone("the session has ended; open a new one and call again")
        self.places.check()
        size = weigh(args)
        self.places.check_args(size)
        if patience <= 0:
            self._working.check_room()
        now = trio.current_time()
        call = Call(
            self.new_id(),
            server,
            tool,
            args,
            ttl,
            timestamp(self.wall()),
            now,
            now + hard_timeout,
            # Born with a deadline beyond any wait, so that no path leaves a call without one.
            trio.CancelScope(deadline=now + min(hard_timeout, patience + ttl)),
            size,
            within=within,
            overdue=overdue,
        )
        if within is not None:
            within.makes.append(call)
        self._calls[call.id] = call
        self.places.take(call)
        script = None if within is None else within.id
        self.journal.note(
            facts.CallBegun, self.session_id, call.id, server, tool, bool(args), size, script
        )
        begin(self.nursery, self._wall(call), self._run, call, send, name=f"call {call.id}")
        return call

    def place(self) -> AbstractContextManager[None]:
        """Counts a request that may wait for a server without being a call, while it does.

        Raises:
            LimitReached: there are too many, calls and others together.
        """
        return self.places.one()

    async def wait(
        self,
        call: Call,
        patience: float,
        move_on_after: Callable[
            [float], AbstractContextManager[trio.CancelScope]
        ] = trio.move_on_after,
        stays: Callable[[], bool] = lambda: False,
    ) -> Result | Task:
        """What a request does: the result, or the task that the call has become.

        A question ends the wait, because it is the one who waits that has to answer; unless its
        client is asked itself meanwhile. Who is cancelled cancels the call, unless that *stays*.

        Raises:
            ToolError: the call failed, or may not become a task.
        """
        try:
            with move_on_after(patience):
                while not (call.slot.is_settled or (call.needs_answers and self._has_room(call))):
                    await call.news.wait()
        except trio.Cancelled:
            # promote() may have been first: then the client has only stopped waiting.
            if call.task is None and not stays():
                self.abandon(call, "request cancelled by the client")
            raise
        # No checkpoint from here on: returned or promoted, never both.
        if call.task is None and not call.slot.is_settled:
            self.promote(call)
        if call.task is not None:
            return call.task
        return call.slot.peek()

    async def complete(
        self,
        call: Call,
        why: str = "its script has ended",
        stays: Callable[[], bool] = lambda: False,
    ) -> Result:
        """What a script does: the result, however long it takes. The call becomes no task.

        *why* it ends with who waits, unless it *stays*.

        Raises:
            ToolError: the call failed.
        """
        try:
            await call.slot.wait()
        except trio.Cancelled:
            if not stays():
                self.abandon(call, why)
            raise
        return call.slot.peek()

    def _has_room(self, call: Call) -> bool:
        return call.task is not None or self._working.has_room

    def promote(self, call: Call) -> None:
        """Make a task of a call whose request will not be answered with its outcome.

        Raises:
            LimitReached: there are too many; the call is cancelled.
        """
        if call.task is not None or call.state is CallState.CANCELLED:
            return
        if call.slot.is_settled:
            self._keep(call)
            return
        try:
            self._working.check_room()
        except LimitReached:
            self.abandon(call, "too many working tasks")
            raise
        call.state = step(CALL, call.state, CallState.PROMOTED)
        self.places.leave(call)
        call.expires = trio.current_time() + call.ttl
        call.scope.deadline = min(call.hard_end, call.expires)
        self._working.begin(call)

    def queued(self, call: Call) -> None:
        """It is a script, and others have to end first."""
        self.journal.note(facts.CallQueued, self.session_id, call.id)

    def sent(self, call: Call) -> None:
        """Its server has it, or is about to."""
        call.waiting_on = "answer"
        call.sent_at = trio.current_time()
        self.journal.note(facts.CallSent, self.session_id, call.id)

    def returned(self, call: Call) -> None:
        """Its server has not run it."""
        call.waiting_on = "connection"
        self.journal.note(facts.CallReturned, self.session_id, call.id)

    def _keep(self, call: Call) -> None:
        """Its outcome came in the very tick in which its client stopped waiting for it."""
        self._calls[call.id] = call
        error = call.slot.error
        fate = TaskState.COMPLETED if error is None else TaskState.FAILED
        outcome = error if isinstance(error, ToolError) else call.slot.peek()
        task = self._working.begin(call)
        self._measure(call, fate, outcome)
        self._working.end(call, task, fate, outcome)
        self.finished.keep(call)

    async def _run(self, call: Call, send: Send) -> None:
        try:
            with self._wall(call, partial(self._crashed, call)):
                with call.scope:
                    try:
                        result = await send(call)
                    except ToolError as error:
                        self._settle(call, TaskState.FAILED, explained(call, error))
                    else:
                        self._settle(call, TaskState.COMPLETED, result)
                if call.scope.cancelled_caught:
                    # Its deadline. Who cancels it on purpose has settled the slot before.
                    self._out_of_time(call)
        finally:
            if not call.slot.is_settled:
                # The session is ending: who waits in a nursery of somebody else must hear of it.
                self._settle(call, TaskState.CANCELLED, gone())
            self.places.over(call)
            if call.within is not None:
                call.within.makes.remove(call)
            if call.task is None:
                del self._calls[call.id]

    def _wall(self, call: Call, failed: Callable[[str], object] | None = None) -> Firewall:
        fields = {"session": self.session_id, "server": call.server, "tool": call.tool}
        return Firewall("call_crashed", failed, fields=fields)

    def _crashed(self, call: Call, log_id: str) -> None:
        self._settle(call, TaskState.FAILED, InternalError(log_id))

    def end(self) -> None:
        """The session has ended: whoever waits hears it, before anything is cancelled for that."""
        for call in tuple(self._calls.values()):
            self._settle(call, TaskState.CANCELLED, gone())

    def _out_of_time(self, call: Call) -> None:
        if call.hard_end <= trio.current_time():
            self._settle(call, TaskState.FAILED, overdue(call))
        else:
            self._settle(call, TaskState.EXPIRED, expired(call))

    def _settle(self, call: Call, fate: TaskState, outcome: Result | ToolError) -> bool:
        """Decide the call's fate; False if it has one already."""
        if call.slot.is_settled:
            return False
        fate, outcome = self._measure(call, fate, outcome)
        self.places.leave(call)
        error = outcome if isinstance(outcome, ToolError) else None
        if isinstance(outcome, ToolError):
            call.slot.fail(outcome)
        else:
            call.slot.set(outcome)
        call.tell()
        for made in tuple(call.makes):
            self.abandon(made, "its script has ended")
        if call.task is not None:
            self._working.end(call, call.task, fate, outcome)
        elif fate is TaskState.CANCELLED:
            call.state = step(CALL, call.state, CallState.CANCELLED)
        else:
            call.state = step(CALL, call.state, CallState.FAILED if error else CallState.RETURNED)
        self.journal.note(
            facts.CallSettled,
            self.session_id,
            call.id,
            call.server,
            call.tool,
            fate,
            call.task is not None,
            round((trio.current_time() - call.started) * 1000),
            None if error is None else error.code,
            not isinstance(outcome, ToolError) and outcome.get("isError") is True,
        )
        if call.task is not None:
            self.finished.keep(call)
        return True

    def _measure(
        self, call: Call, fate: TaskState, outcome: Result | ToolError
    ) -> tuple[TaskState, Result | ToolError]:
        """Of a task, what will be kept; another fate if what its backend said cannot be."""
        if call.task is None:
            return fate, outcome
        shown = outcome.to_json() if isinstance(outcome, ToolError) else outcome
        with (wall := self._wall(call)):
            call.size = call.args_bytes + weigh(shown)
        if wall.log_id is not None and fate in {TaskState.COMPLETED, TaskState.FAILED}:
            return TaskState.FAILED, InternalError(wall.log_id)
        return fate, outcome

    def abandon(self, call: Call, reason: str) -> None:
        """Nobody wants it any more: it is cancelled, if it is not over."""
        if self._settle(call, TaskState.CANCELLED, ExecutionFailed(f"cancelled: {reason}")):
            call.scope.cancel(reason)

    def cancel(self, task_id: str, reason: str = "cancelled by cancel_task") -> tuple[bool, Task]:
        """Stop a task and tell its backend; False if it had met its fate before.

        Raises:
            NotFound: no such task.
        """
        call = self.get(task_id)
        assert call.task is not None
        error = ExecutionFailed(f"task {task_id} was cancelled", {"status": "cancelled"})
        # The slot first, the scope second: an answer in this very tick cannot make it a lie.
        won = self._settle(call, TaskState.CANCELLED, error)
        if won:
            call.scope.cancel(reason)
        return won, call.task

    def get(self, task_id: str) -> Call:
        call = self._calls.get(task_id)
        if call is None or call.task is None:
            raise NotFound(
                f"no task {task_id!r}; finished ones are kept "
                f"{self.limits.finished_task_ms // 1000} s, at most {self.limits.results} "
                f"(limits.results) of {self.limits.results_bytes} bytes together "
                "(limits.results_bytes). list_tasks shows what there is"
            )
        return call

    def find(self, task_id: str) -> Call | None:
        """That of a task which is still known."""
        call = self._calls.get(task_id)
        return None if call is None or call.task is None else call

    def of_id(self, call_id: str) -> Call | None:
        """One under way, task or not, or that of a task which is kept."""
        return self._calls.get(call_id)

    def known(self, call_id: str) -> Call:
        """The same.

        Raises:
            NotFound: it is neither.
        """
        call = self._calls.get(call_id)
        if call is None:
            raise NotFound("that call is over; what it came to was its client's alone")
        return call

    @property
    def has_unsettled(self) -> bool:
        return bool(self.places or self._working)

    def tasks(self) -> list[Task]:
        """Oldest first."""
        return [call.task for call in self._calls.values() if call.task is not None]

    def working(self, server: str | None = None) -> list[Task]:
        """Oldest first, by their calls."""
        return self._working.of(server)

    def under_way(self, server: str | None = None) -> list[Call]:
        """Not settled yet, tasks or not; oldest first."""
        return [
            call for call in sorted(self.unsettled(), key=_by_id) if server in (None, call.server)
        ]

    def unsettled(self) -> list[Call]:
        """Those of all servers, in no order."""
        return [self._calls[id_] for id_ in (*self.places, *self._working)]

    def progressed(self, call: Call, said: Mapping[str, Any]) -> None:
        """The backend says how far it is."""
        if call.slot.is_settled:
            return
        for listener in tuple(call.listeners):
            listener(said)
        if call.task is not None:
            call.task.status_message = status_message(said)
            call.task.last_updated_at = timestamp(self.wall())
            call.tell()


def _by_id(call: Call) -> str:
    return call.id
