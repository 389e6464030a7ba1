"""Questions of backends put to clients that can answer them themselves, beside the tools.

Whoever may be asked is an :class:`Asker`, and offers itself in one of two ways::

    with session.relay.offered(asker) as offer:       # a request of a client, while it is under way
        with session.relay.waiting(offer, call.id):   # while it waits for that call
            await session.calls.wait(call, patience)

    session.relay.join(asker)                         # a connection that can be asked at any time
    ...
    session.relay.leave(asker)

A question goes to the oldest request that waits for its call (or for what the task that asks works
for, see `callbacks.as_work_for`: an offer has an id for that) and says that it can; else to a
connection that can. Who is heard at once comes before who is not. Only one is asked, and what it
can is judged anew for each question. What nobody can take now is put to who offers itself later, as
long as it is open.

One that is asked elsewhere stays answerable by tool. Its slot decides which answer counts; as it is
closed, its client is told (`withdraw`), before its server has what may come to an answer. One that
its client refuses is for the tools alone, and told again as such. Knows no protocol but the names
of capabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import attrs
import trio
from mcp import MCPError

from ... import logs
from ...errors import InvalidArguments
from ...journal import Journal
from ...model.facts import QuestionLeft, QuestionRelayed
from ...waits.firewall import Firewall, begin
from .answers import judged
from .question import Kind, Question
from .questions import Questions


class CannotBeAsked(Exception):
    """Of an asker: its client will not answer there any more. Another one may be asked."""


class Asker(Protocol):
    """One request, or one connection, of a client."""

    @property
    def is_alone(self) -> bool:
        """Nobody else answers: what its client says goes to the server as it is, errors too."""
        ...

    @property
    def view(self) -> str:
        """What its client is shown, by the name that the configuration has for that."""
        ...

    @property
    def is_heard(self) -> bool:
        """Whether what is put to it now reaches its client now, and not with its next request."""
        ...

    def can(self, kind: Kind, params: Mapping[str, Any]) -> bool:
        """Whether its client can take such a question, there and now."""
        ...

    async def ask(self, question: Question) -> dict[str, Any]:
        """The client's answer as it came. Cancelled when the question is over.

        Raises:
            CannotBeAsked: nobody is there any more.
            MCPError: the client has answered with an error.
        """
        ...

    async def roots(self) -> Any:
        """What its client says of its roots; None if it does not, or has said so by itself."""
        ...

    def withdraw(self, question: Question) -> None:
        """It is over: tell the client now, if it has it; who still asks it is cancelled."""
        ...


def takes(capabilities: object, kind: Kind, params: Mapping[str, Any]) -> bool:
    """Whether a client with these *capabilities* can take that question.

    One that says nothing of forms or pages has forms, as all had before there were pages.
    """
    said = capabilities.get(kind) if isinstance(capabilities, Mapping) else None
    if not isinstance(said, Mapping):
        return False
    if kind == "sampling":
        return "tools" in said or not (params.get("tools") or params.get("toolChoice"))
    match params.get("mode", "form"):
        case "form":
            return "form" in said or "url" not in said
        case "url":
            return "url" in said
    return False


@attrs.define(eq=False)
class Offer:
    """A request under way, and what it waits for: calls, or its own work."""

    asker: Asker
    id: str
    works: list[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.works = [self.id]


@attrs.define(eq=False)
class _Open:
    """A question that is open."""

    question: Question
    questions: Questions
    asking: trio.CancelScope | None = None
    """Of who has put it to a client."""
    asker: Asker | None = None
    """Who that is."""
    is_refused: bool = False

    def withdraw(self) -> None:
        if self.asker is not None:
            self.asker.withdraw(self.question)


@attrs.define(eq=False)
class Askers:
    """Of one session."""

    session_id: str
    nursery: trio.Nursery
    new_id: Callable[[], str]
    wants: Callable[[str, Kind, str], bool]
    """Whether questions of that server and kind are put to clients with that view."""
    journal: Journal = attrs.field(factory=Journal)
    _offers: list[Offer] = attrs.field(factory=list, init=False)
    """Oldest first."""
    _joined: list[Asker] = attrs.field(factory=list, init=False)
    _open: dict[str, _Open] = attrs.field(factory=dict, init=False)

    @contextmanager
    def offered(self, asker: Asker) -> Generator[Offer]:
        offer = Offer(asker, self.new_id())
        self._offers.append(offer)
        try:
            yield offer
        finally:
            self._offers.remove(offer)

    @contextmanager
    def waiting(self, offer: Offer, work: str) -> Generator[None]:
        """The request waits for that from here on: what is open of it may be put to it."""
        offer.works.append(work)
        self._look()
        try:
            yield
        finally:
            offer.works.remove(work)

    def join(self, asker: Asker) -> None:
        self._joined.append(asker)
        self._look()

    def leave(self, asker: Asker) -> None:
        if asker in self._joined:
            self._joined.remove(asker)

    def look(self, asker: Asker) -> None:
        """One that has joined can do more than it could."""
        if asker in self._joined:
            self._look()

    @contextmanager
    def during(self, question: Question, questions: Questions) -> Generator[None]:
        """While a question is open: it is with whom it could be put to, if there is somebody."""
        one = self._open[question.id] = _Open(question, questions)
        question.withdraw = one.withdraw
        self._put(one)
        try:
            yield
        finally:
            del self._open[question.id]
            if one.asking is not None:
                one.asking.cancel("the question is over")

    async def roots(self, works: Collection[str]) -> Any:
        """What clients say of their roots that wait for one of these; None if none does."""
        for offer in [each for each in self._offers if not set(each.works).isdisjoint(works)]:
            if (said := await offer.asker.roots()) is not None:
                return said
        return None

    def _look(self) -> None:
        for one in tuple(self._open.values()):
            if self._put(one):
                one.questions.relayed(one.question)

    def _put(self, one: _Open) -> bool:
        """Ask somebody, if nobody is asked and there is somebody who can be."""
        question = one.question
        if one.asking is not None or one.is_refused or not question.is_open:
            return False
        asker = self._asker(question)
        if asker is None or self.nursery.cancel_scope.cancel_called:
            return False
        question.is_relayed = True
        one.asking, one.asker = trio.CancelScope(), asker
        self.journal.note(QuestionRelayed, self.session_id, question.id)
        fields = {"session": self.session_id, "server": question.server}

        def crashed(_: str) -> None:
            self._refused(one)

        wall = Firewall("relay_crashed", crashed, fields=fields)
        begin(self.nursery, wall, self._ask, one, asker, one.asking)
        return True

    def _asker(self, question: Question) -> Asker | None:
        kind = question.kind
        found = [
            asker
            for asker in self._askers(question)
            if self.wants(question.server, kind, asker.view) and asker.can(kind, question.params)
        ]
        heard = (asker for asker in found if asker.is_heard)
        return next(heard, found[0] if found else None)

    def _askers(self, question: Question) -> Iterator[Asker]:
        for work in question.concerns or (question.call,):
            for offer in self._offers:
                if work in offer.works:
                    yield offer.asker
        yield from self._joined

    async def _ask(self, one: _Open, asker: Asker, scope: trio.CancelScope) -> None:
        question = one.question
        with scope:
            try:
                answer = await asker.ask(question)
                one.asker = None  # what has answered has nothing to be told
                state, result = await judged(question, answer, as_it_is=asker.is_alone)
            except CannotBeAsked:
                self._is_back(one)
            except (MCPError, InvalidArguments) as error:
                if asker.is_alone:
                    one.questions.refuse(question, error)
                    return
                said = error.error.message if isinstance(error, MCPError) else error.message
                what = {"server": question.server, "kind": question.kind}
                logs.write("info", "relay_refused", session=self.session_id, **what, error=said)
                self._refused(one)
            else:
                one.questions.take(question, state, result)

    def _refused(self, one: _Open) -> None:
        one.is_refused = True
        self._is_back(one)

    def _is_back(self, one: _Open) -> None:
        """Nobody is asked any more: somebody else is, or it is for the tools."""
        one.asking = one.asker = None
        one.question.is_relayed = False
        if one.question.is_open and not self._put(one):
            self.journal.note(QuestionLeft, self.session_id, one.question.id)
            one.questions.left(one.question)
