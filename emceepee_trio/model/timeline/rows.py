"""One row for each call, question, connection and timer: what it was in, from when to when.

A row is in one *phase* at a time; for a call, that is what it waits for. Which one that is, and
when it begins, is for ``replay`` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from ..facts import Fact

Kind: TypeAlias = Literal["call", "question", "connection", "timer"]
Phase: TypeAlias = Literal[
    "turn",
    "connection",
    "reconnection",
    "preparation",
    "server",
    "question",
    "client",
    "tools",
    "trying",
    "up",
    "unwell",
    "closing",
    "time",
]

PHASES: Mapping[Phase, str] = {
    "turn": "its turn",
    "connection": "a connection",
    "reconnection": "a new connection",
    "preparation": "being sent",
    "server": "its server",
    "question": "an answer",
    "client": "its client",
    "tools": "an answer",
    "trying": "a greeting",
    "up": "nothing",
    "unwell": "a sign of life",
    "closing": "its end",
    "time": "its time",
}
"""What whoever is in that phase waits for."""

UNDER_WAY = "under way"
"""The outcome of what has none yet."""


@attrs.define(eq=False)
class Span:
    phase: Phase
    begins: float
    ends: float | None = None
    """None: it goes on."""


@attrs.define(eq=False)
class Row:
    kind: Kind
    id: str
    server: str
    name: str
    begins: float
    within: str | None = None
    """The call of the script that makes it."""
    ends: float | None = None
    outcome: str = UNDER_WAY
    told_bytes: int = 0
    """Of its result, in answers."""
    spans: list[Span] = attrs.field(factory=list)
    facts: list[Fact] = attrs.field(factory=list)

    @property
    def phase(self) -> Phase | None:
        """What it waits for; none if it is over."""
        return self.spans[-1].phase if self.ends is None and self.spans else None

    def enters(self, phase: Phase, at: float) -> None:
        if self.ends is not None or self.phase == phase:
            return
        self._leaves(at)
        self.spans.append(Span(phase, at))

    def is_over(self, outcome: str, at: float) -> None:
        if self.ends is None:
            self._leaves(at)
            self.ends, self.outcome = at, outcome

    def _leaves(self, at: float) -> None:
        if self.spans:
            self.spans[-1].ends = at
            if self.spans[-1].begins == at:
                self.spans.pop()
