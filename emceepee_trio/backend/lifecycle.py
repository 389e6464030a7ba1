"""What becomes of a backend and of its connections: decided here, done elsewhere.

Theory of operation. Whatever happens to a backend is one :class:`~..model.states.Cause`, and the
table that is drawn says where it leads; the state that it leads to says what is to be done next
(:data:`TODO`). :class:`Lifecycle` adds what a table has no room for: which connection is the one,
which is a try to replace it, which was lost last, and when the next try is due. :class:`Story` is
one connection: each thing about it is told once, in an order that a reader can follow, and is
handed out as the events themselves.

Pure: nothing here waits, opens or looks at a clock. `backend.py` and `link.py` report what has
happened, publish what they are given, and do what is to be done.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

import attrs

from ..model import events
from ..model.states import BACKEND, LINK, BackendState, Cause, LinkState, follow, step
from .retries import Retries

if TYPE_CHECKING:
    from .children.process import Exit

L = TypeVar("L")

Events: TypeAlias = tuple[events.Happening, ...]

RECONNECT = "reconnect"
"""Why a connection is left for another one."""
IDLE: Literal["idle"] = "idle"
"""Why one is left for none: nobody uses it."""


class Todo(enum.Enum):
    """What the task of a backend does in a state."""

    WAIT = "until the next try is due, or somebody wants it"
    OPEN = "a connection, and follow it until nothing of it is left"
    LIVE = "with the connection until it is over"
    END = "for good"


TODO: Mapping[BackendState, Todo] = {
    BackendState.NOT_CONNECTED: Todo.WAIT,
    BackendState.IDLE: Todo.WAIT,
    BackendState.CONNECTING: Todo.OPEN,
    BackendState.CONNECTED: Todo.LIVE,
    BackendState.DEGRADED: Todo.LIVE,
    BackendState.RECONNECTING: Todo.WAIT,
    BackendState.ERROR: Todo.WAIT,
    BackendState.DISCONNECTED: Todo.END,
    BackendState.DISABLED: Todo.END,
}


@attrs.define(eq=False)
class Lifecycle(Generic[L]):
    """Of one backend. Its connections are whatever it is given; times are of one clock."""

    name: str
    is_program: bool
    is_lazy: bool
    """Connected when somebody wants it, and not before."""
    tries: Retries
    is_on_trial: bool = False
    """Until it works: a try that fails is the last one."""
    state: BackendState = attrs.field(default=BackendState.NOT_CONNECTED, init=False)
    leaving: str | None = attrs.field(default=None, init=False)
    """Why it is; from then on nothing is opened, and its state is what it was until it is gone."""
    current: L | None = attrs.field(default=None, init=False)
    """The connection, or the try to make one."""
    beside: L | None = attrs.field(default=None, init=False)
    """A try to replace a connection that works."""
    before: L | None = attrs.field(default=None, init=False)
    """The connection that was lost last, if the next one is told as its return."""
    next_try: float | None = attrs.field(default=None, init=False)
    """When that is, if it follows by itself."""
    is_wanted: bool = attrs.field(default=False, init=False)
    """Somebody waits for the try that is under way, or for the next one."""
    _restart_is_told: bool = attrs.field(default=False, init=False)
    """So what comes of it is told, too."""

    @property
    def todo(self) -> Todo:
        return TODO[self.state] if self.leaving is None else Todo.END

    @property
    def due(self) -> float:
        """When a wait is over, as far as is known by now."""
        if self.is_wanted or (self.state is BackendState.NOT_CONNECTED and not self.is_lazy):
            return -math.inf
        return math.inf if self.next_try is None else self.next_try

    def delay_ms(self, now: float) -> int:
        """Until the next try."""
        return max(0, round(((self.next_try or 0) - now) * 1000))

    def happens(self, cause: Cause) -> None:
        """The step, and nothing but that.

        Raises:
            ImpossibleStep: that cannot happen now; nothing has changed.
        """
        self.state = follow(BACKEND, self.state, cause)
        if self.state is not BackendState.RECONNECTING:
            self.next_try = None
        if TODO[self.state] is Todo.WAIT:
            self.is_wanted = False  # who wanted the try before has heard of its end

    def wants(self) -> None:
        """Somebody needs a connection, and there is none."""
        self.is_wanted = True

    def waited(self) -> None:
        """Its wait is over."""
        self.happens(Cause.WANTED if self.is_wanted else Cause.DUE)

    def begins(self, link: L) -> None:
        """*link* is a try: the only one, or one to replace the connection that works."""
        if self.todo is Todo.LIVE:
            self.beside = link
        else:
            assert self.todo is Todo.OPEN
            self.current = link

    def gave_up(self, link: L) -> None:
        """*link* has ended; if it was to replace one that works, that stays."""
        if self.beside is link:
            self.beside = None

    def works(
        self, link: L, pid: int | None, capabilities: Mapping[str, events.Json], version: str
    ) -> Events:
        """*link* is connected. If it was beside another one, that was left, and has been lost."""
        assert link is self.current
        self.happens(Cause.WORKS)
        self.is_on_trial = False
        told: list[events.Happening] = []
        if self._restart_is_told and pid is not None:
            self._restart_is_told = False
            told.append(events.Restarted(self.name, pid, self.tries.attempt))
        if self.before is None:
            told.append(events.ServerConnected(self.name, capabilities, version))
        # else it is told as a return, once it is known what went on meanwhile
        return tuple(told)

    def fails(self, now: float, *, final: bool) -> None:
        """The try did, or a bug of ours has ended what there was."""
        self._waits(self.tries.failed(now, final=final or self.is_on_trial))

    def loses(self, link: L, now: float, connected_at: float, why: str | None) -> None:
        """*link*, which was connected then, is over; *why* we ended it, if we did."""
        self.before = link
        if self.leaving is not None:
            return
        if why == IDLE:
            self.before = None  # whoever needs it connects it as for the first time
            self.happens(Cause.UNUSED)
        elif why is not None or self.beside is not None:
            self.happens(Cause.LOST_BESIDE if why is None else Cause.LEFT)
            if self.beside is not None:
                self.current, self.beside = self.beside, None
        else:
            self._waits(self.tries.lost(now, connected_at))

    def _waits(self, due: float | None) -> None:
        if self.todo is Todo.LIVE:
            self.happens(Cause.LOST_FOR_GOOD if due is None else Cause.LOST)
        else:  # also if it worked, and a bug of ours came before that was told
            self.happens(Cause.FAILED_FOR_GOOD if due is None else Cause.FAILED)
        self.next_try = due

    def follows(self, *, worked: bool, pid: int | None, end: Exit | None, now: float) -> Events:
        """What is told once nothing is left of a connection, or of a try that did not work."""
        name, attempt, delay_ms = self.name, self.tries.attempt, self.delay_ms(now)
        code, signal = (None, None) if end is None else (end.code, end.signal)
        if self.leaving is not None:
            return ()
        if self.state is BackendState.RECONNECTING:
            if not self.is_program:
                return (events.ServerReconnecting(name, attempt, delay_ms),)
            self._restart_is_told = True
            return (events.Restarting(name, attempt, delay_ms, pid, code, signal),)
        gives_up = self.tries.retry.enabled if worked else not self.is_on_trial
        if self.state is BackendState.ERROR and gives_up:
            self._restart_is_told = False
            return (events.RestartFailed(name, attempt, pid, code, signal),)
        return ()

    def leaves(self, why: str) -> bool:
        """Whether that is new."""
        if self.leaving is not None:
            return False
        self.leaving = why
        return True

    def crashed(self) -> bool:
        """A bug of ours has ended what there was; whether there was a connection or a try.

        Else it waits for what it has waited for.
        """
        self.current = self.beside = None
        return self.todo in {Todo.OPEN, Todo.LIVE}

    def ended(self) -> None:
        """Nothing of it is left."""
        if self.state is not BackendState.DISABLED:
            self.happens(Cause.REMOVED)


@attrs.define(eq=False)
class Story:
    """One connection: how far it is, and what is still to be told of it."""

    name: str
    state: LinkState = attrs.field(default=LinkState.OPENING, init=False)
    leaving: str | None = attrs.field(default=None, init=False)
    """Why we end it ourselves, if we do."""
    pid: int | None = attrs.field(default=None, init=False)
    """Of a child whose end was not told."""
    _has_died: bool = attrs.field(default=False, init=False)
    """That child, without our doing."""

    @property
    def is_untold(self) -> bool:
        """Its loss."""
        return self.state is LinkState.OVER

    @property
    def is_due(self) -> bool:
        """That can be told now; of a child that we end, once it has ended."""
        return self.is_untold and (self.leaving is None or self.pid is None)

    def opened(self, pid: int | None, end: Exit | None) -> Events:
        """Another transport is, that of a child if there is a *pid*; *end*: of the one before."""
        self._has_died = False  # a first child ended of our asking what it speaks
        told = self._child_ended(end)
        self.pid = pid
        return told if pid is None else (*told, events.ProcessStarted(self.name, pid))

    def works(self) -> None:
        self.state = step(LINK, self.state, LinkState.WORKING)

    def leaves(self, why: str) -> None:
        """Who comes first says why; what is over already was lost, and not left."""
        if self.leaving is None:
            self.leaving = why
        if self.state is LinkState.OPENING:
            self.state = step(LINK, self.state, LinkState.GIVEN_UP)

    def transport_ended(self, *, by_itself: bool) -> None:
        """Before anything else is made of it; *by_itself*: its child has died."""
        self._has_died = by_itself and self.leaving is None

    def loses(self) -> bool:
        """Nothing will come any more; whether that is the end of what worked, and news."""
        if self.state is not LinkState.WORKING:
            return False
        self.state = step(LINK, self.state, LinkState.OVER)
        return True

    def told(self, end: Exit | None, reason: str) -> Events:
        """Its loss, with the end of its child if that is known."""
        self.state = step(LINK, self.state, LinkState.TOLD)
        told = self._child_ended(end)
        if self.leaving == IDLE:  # nothing is lost, and the end of the child says it all
            return told
        return (*told, events.ServerDisconnected(self.name, reason, self.leaving is not None))

    def ended(self, end: Exit | None) -> Events:
        """Nothing of it is left."""
        self.state = step(LINK, self.state, LinkState.ENDED)
        return self._child_ended(end)

    def _child_ended(self, end: Exit | None) -> Events:
        """That, once it is known."""
        pid = self.pid
        if pid is None or end is None:
            return ()
        self.pid = None
        if self._has_died:
            return (events.ProcessCrashed(self.name, pid, end.code, end.signal),)
        reason = IDLE if self.leaving == IDLE else None
        return (events.ProcessStopped(self.name, pid, end.code, end.signal, reason),)
