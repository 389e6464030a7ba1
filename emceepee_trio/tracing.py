"""What whoever answers or makes requests tells of them; without a tracer, nothing is told.

Knows no OpenTelemetry: :mod:`.telemetry` makes spans of it, and is there if somebody wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeAlias

import attrs

from .model.facts import Fact

Answered: TypeAlias = Callable[[object], object]
"""Told of the result, if it comes to one."""


@attrs.frozen
class TracedRequest:
    """A request as either side of it knows it, or a notification."""

    method: str
    params: Mapping[str, Any]
    id: object
    """None if it has none, or nobody here knows it."""
    version: str
    """Of the protocol."""
    transport: str
    """``tcp`` where it is HTTP, ``pipe`` where it is stdio."""
    session: str | None = None
    """Of its client."""
    server: str | None = None
    """That is asked, or asks; it is between us and a client, if there is none."""
    url: str | None = None
    """Of that server."""


class Sending(Protocol):
    """A request of ours to a server or a client, on its way."""

    @property
    def params(self) -> Mapping[str, Any]:
        """What to send in place of its own: they say of which trace it is."""
        ...

    def moved_on(self) -> None:
        """Progress of it was told."""
        ...

    def answered(self, result: object) -> None:
        """It has come to that."""
        ...


class Tracing(Protocol):
    """Also a reader of facts: calls, those of them that become tasks, and questions."""

    @property
    def kinds(self) -> Collection[type[Fact]]: ...

    def read(self, fact: Fact) -> object: ...

    def answering(self, asked: TracedRequest) -> AbstractContextManager[Answered]:
        """Around all that is done to answer a request of a client."""
        ...

    def asking(self, asked: TracedRequest, call: str | None) -> AbstractContextManager[Sending]:
        """Around a request of ours to a server; for that *call*, if it is for one."""
        ...

    def relaying(
        self, asked: TracedRequest, question: str | None
    ) -> AbstractContextManager[Sending]:
        """Around a request of ours to a client; it puts that *question*, if it puts one."""
        ...

    def asked(
        self, asked: TracedRequest, call: str | None, session: str | None
    ) -> AbstractContextManager[object]:
        """Around all that is done to answer a request of a server, which is for that *call*.

        Nobody says which, if that is None: it is one of that *session*'s.
        """
        ...

    def saying(self, notice: TracedRequest, call: str | None) -> Mapping[str, Any]:
        """A server is notified, because of that *call*: what to send in place of its params."""
        ...

    def heard(self, notice: TracedRequest) -> None:
        """A client or a server has notified us."""
        ...

    def apart(self) -> None:
        """What this task does from here on is part of no request, whoever has started it."""
        ...


def _nobody(result: object) -> None:
    """Nobody wants to know."""


UNTRACED: AbstractContextManager[Answered] = nullcontext(_nobody)
"""In place of `Tracing.answering`, where nobody traces."""
