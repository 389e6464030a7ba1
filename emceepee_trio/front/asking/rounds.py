"""One request of the modern era, over as many exchanges with its client as that takes.

What it wants is worked on in the session, whichever exchange waits for it at the moment. What that
asks of the client ends the exchange, with a state; the retry with the answers waits on for the same
work. Nobody's patience runs while the client has the question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs
import trio
from mcp import MCPError

from ... import logs
from ...backend.connections.callbacks import asked_as
from ...errors import InternalError, InvalidArguments, LimitReached, SessionGone, ToolError
from ...session.questions.answers import judged
from ...session.questions.question import Kind, Question
from ...session.questions.relay import CannotBeAsked, takes
from ...tools.common.registry import Request
from ...views import ONE_SERVER
from ...waits.bell import Bell
from ...waits.firewall import Firewall, begin
from ...waits.patience import Patience
from ...waits.slot import Slot
from .backchannel import METHODS, not_declared
from .puts import Put, Puts

if TYPE_CHECKING:
    from .interrupted import Interruptions

T = TypeVar("T")

ROOTS = "roots/list"
LINGERS = 30.0
"""Seconds for a client to send a retry again whose stream it has lost, or to fetch what came of it
while it was asked; then it has gone away."""
NOT_MODERN = ("task", "elicitationId")
"""Parameters of questions that this era has no more."""


class InputRequired(Exception):
    """What answers this exchange: the client is asked something first."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


@attrs.define(eq=False)
class Interrupted(Generic[T]):
    """Such a request. To the relay it is an :class:`.Asker`: its client is asked."""

    owner: Interruptions
    of: tuple[str, dict[str, Any]]
    request: Request
    """The first; what is worked on knows no other."""
    view: str
    capabilities: Mapping[str, Any] = attrs.field(factory=dict, init=False)
    """Of the exchange that waits, or has been asked last."""
    _states: list[str] = attrs.field(factory=list, init=False)
    """That its client may come with: the last, and the one before."""
    _told: frozenset[str] = attrs.field(default=frozenset(), init=False)
    """Keys of what it was asked with the last."""
    _roots: Slot[Any] | None = attrs.field(default=None, init=False)
    """What it says of them, once it is asked."""
    _outcome: Slot[T] = attrs.field(factory=Slot, init=False)
    _waiting: int = attrs.field(default=0, init=False)
    """Exchanges."""
    _is_known: bool = attrs.field(default=False, init=False)
    """Its client has a state of it."""
    _is_fetched: bool = attrs.field(default=False, init=False)
    _is_left: bool = attrs.field(default=False, init=False)
    """Nobody can come back for it."""
    _listener: Callable[[Mapping[str, Any]], None] | None = attrs.field(default=None, init=False)
    """Of the exchange that waits, for progress."""
    _patience: Patience = attrs.field(factory=Patience, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _news: Bell = attrs.field(factory=Bell, init=False)
    puts: Puts = attrs.field(init=False)
    """What its client is asked."""

    def __attrs_post_init__(self) -> None:
        self.puts = Puts(self._news)

    async def run(self, work: Callable[[Request], Awaitable[T]]) -> None:
        """Do the *work*, and keep what it has come to until its client has that."""
        relay = self.owner.session.relay
        self.request.patience = self._patience
        try:
            with self._scope, relay.offered(self) as self.request.offer:
                self._outcome.set(await work(self.request))
            self._outcome.fail(_gone())  # nobody wants it any more
        except (ToolError, MCPError) as error:
            self._outcome.fail(error)
        except trio.Cancelled:
            self._outcome.fail(_gone())
            raise
        finally:
            self.puts.fail_all()
            self._news.ring()
        await self._until_fetched()

    async def _until_fetched(self) -> None:
        if self._states:
            with trio.move_on_after(LINGERS):
                while not self._is_fetched:
                    await self._news.wait()
            if not self._is_fetched:
                self.let_go()

    def crashed(self, log_id: str) -> None:
        self._outcome.fail(InternalError(log_id))
        self._news.ring()

    # As one who can be asked:

    @property
    def is_alone(self) -> bool:
        return self.view == ONE_SERVER

    @property
    def is_heard(self) -> bool:
        return self._waiting > 0

    def can(self, kind: Kind, params: Mapping[str, Any]) -> bool:
        is_over = self._is_left or self._outcome.is_settled
        return not is_over and (self.is_alone or takes(self.capabilities, kind, params))

    async def ask(self, question: Question) -> dict[str, Any]:
        if not takes(self.capabilities, question.kind, question.params):
            raise not_declared(question)
        said = {"method": METHODS[question.kind], "params": _modern(question.params)}
        put = partial(Put, said, partial(takes, kind=question.kind, params=question.params))
        key = self.puts.key(question.key or question.id, question.id)
        answer: dict[str, Any] | None = None
        try:
            while answer is None:
                given = await self.puts.answer(key, put())
                try:
                    await judged(question, given, as_it_is=self.is_alone)
                except InvalidArguments:
                    pass  # it is asked again, by the answer to the very retry
                else:
                    answer = given
            return answer
        finally:
            self.puts.take_away(key)
            if question.slot.error is not None:
                self._question_is_dead()
            elif not self.puts:
                self._patience.go_on()
            self._news.ring()

    async def roots(self) -> Any:
        """What its client says of them, whom it costs a round: once in all of its exchanges."""
        if self._roots is not None:
            await self._roots.wait()
            return self._roots.peek()
        if "roots" not in self.capabilities or self._is_left or self._outcome.is_settled:
            return None
        self._roots = Slot()
        await trio.lowlevel.checkpoint()  # what is asked beside it is put by tasks of its own
        key, said = self.puts.key(asked_as.get() or "roots", self.owner.session.new_id()), None
        try:
            put = Put({"method": ROOTS, "params": {}}, lambda can: "roots" in can)
            said = (await self.puts.answer(key, put)).get("roots")
        except CannotBeAsked:
            pass
        finally:
            self.puts.take_away(key)
            self._roots.set(said)
            if not self.puts:
                self._patience.go_on()
            self._news.ring()
        return said

    def withdraw(self, question: Question) -> None:
        """Its client has an answer to a request, and nothing under way that it could hear of it."""

    def _question_is_dead(self) -> None:
        """Nobody can come back with its state; who waits is told by what becomes of the work."""
        self._forget_states()
        if not self._waiting:
            self._give_up()

    # For exchanges:

    async def attend(
        self, request: Request, capabilities: Mapping[str, Any], *, may_resend: bool
    ) -> T:
        """What the work comes to, for the exchange of that *request*.

        Raises:
            InputRequired: its client is asked first.
            MCPError: the work has failed so.
            ToolError: so does this.
        """
        self._begin_to_wait(request, capabilities)
        try:
            while not self._outcome.is_settled:
                if asks := self.puts.unanswered():
                    if trio.current_time() >= self.puts.asks_at:
                        self._follow(request)
                        raise InputRequired(self._asking(asks))
                    with trio.move_on_at(self.puts.asks_at):
                        await self._news.wait()
                else:
                    await self._news.wait()
            self._follow(request)
            self._is_fetched = True
            self._news.ring()
            self.owner.forget(self._states)
            return self._outcome.peek()
        except trio.Cancelled:
            if self._waiting == 1:
                self._is_cut_off(may_resend=may_resend)
            raise
        finally:
            self._waiting -= 1
            if self.puts and not self._waiting:
                self._patience.stop()

    def _begin_to_wait(self, request: Request, capabilities: Mapping[str, Any]) -> None:
        self._waiting += 1
        self._news.ring()
        self.capabilities = capabilities
        self._listener = request.on_progress
        self.request.on_progress = self._heard
        if request is not self.request:
            request.ignored = self.request.ignored
            request.goes_on_with(self.request)
            request.can_go_on(self.request.give_up)
        self._patience.go_on()
        self.puts.fail_for(capabilities)

    def _follow(self, request: Request) -> None:
        """What answers it may be lost before it is written."""

        def ended(is_written: bool) -> None:
            if is_written:
                self._is_known = True
            elif not self.owner.session.inner.cancel_scope.cancel_called:
                self._is_lost()

        request.at_end(ended)

    def _is_lost(self) -> None:
        """Its client comes again with what it has: a state, or nothing."""
        if self._is_fetched and self._states:
            self._is_fetched = False
            self.owner.keep(self, self._states)
            begin(self.owner.session.inner, Firewall("tool_crashed"), self._until_fetched)
        elif not (self._outcome.is_settled or self._is_known or self._waiting):
            self.request.is_cut_off = True
            self._scope.cancel("asked in an answer that nobody has")

    def _heard(self, said: Mapping[str, Any]) -> None:
        if self._listener is not None:
            self._listener(said)

    def _asking(self, requests: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """What an exchange is answered with that asks these."""
        if not self._states or requests.keys() != self._told:
            self._told = frozenset(requests)
            self.owner.forget(self._states[:-1])
            self._states = [*self._states[-1:], self.owner.give(self)]
        return {
            "resultType": "input_required",
            "inputRequests": requests,
            "requestState": self._states[-1],
        }

    def _is_cut_off(self, *, may_resend: bool) -> None:
        """The last exchange that waited is closed, which cancels its request, or has lost it."""
        inner = self.owner.session.inner
        if not self._states or not may_resend or inner.cancel_scope.cancel_called:
            self._scope.cancel("not wanted any more")
        else:
            begin(inner, Firewall("tool_crashed"), self._wait_for_another)

    async def _wait_for_another(self) -> None:
        with trio.move_on_after(LINGERS):
            while not (self._waiting or self._outcome.is_settled):
                await self._news.wait()
        if not (self._waiting or self.puts):
            self._scope.cancel("not wanted any more")

    def let_go(self) -> None:
        """Nobody comes for it any more: what can go on without its client does."""
        self._forget_states()
        self.puts.fail_all()
        if not self._is_fetched:
            self._give_up()

    def _forget_states(self) -> None:
        self.owner.forget(self._states)
        self._states = []

    def _give_up(self) -> None:
        self._is_left = True
        if not self.request.goes_on:
            self._scope.cancel("nobody waits for it any more")
        try:
            self.request.give_up()
        except LimitReached as error:
            session = self.owner.session.id
            logs.write("warn", "promotion_refused", session=session, error=error.message)


def _gone() -> SessionGone:
    return SessionGone("the session ended under this request; open a new one")


def _modern(params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key not in NOT_MODERN}
