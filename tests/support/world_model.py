"""What must become of a world of sessions: a model that knows no trio, no clock and no protocol.

Everything with a fate is told before a step what it may become in it, and looked at after the step.
Whoever was told nothing stays what it is; where rivals meet in one step, each has said its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import attrs

Fact = tuple[str, str]
"""The type of an event, and what it is about."""

FINISHED = {
    "returned": "task_completed",
    "failed": "task_failed",
    "cancelled": "task_cancelled",
    "expired": "task_expired",
}
ENDS = {"expired": "expired", "rejected": "expired", "cancelled": "cancelled"}
"""Of questions: what is told of those fates. Of the others, whoever decided them knows."""

OPEN = {"in_flight", "working", "pending"}


@attrs.define(eq=False)
class Fated:
    """Something that meets one fate."""

    key: str
    """In everything that is said of it; carries the secret of its session."""
    server: str
    fate: str = attrs.field(kw_only=True)
    over_at: float = attrs.field(default=math.inf, init=False)
    because: set[str] = attrs.field(factory=set, init=False)
    """What was done to it in the step in which it met its fate."""
    _may: dict[str, set[str]] = attrs.field(factory=dict, init=False)
    """Fates that it may meet in this step, and what of."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.key}: {self.fate}>")

    @property
    def is_open(self) -> bool:
        return self.fate in OPEN

    def may(self, fate: str, because: str) -> None:
        if self.is_open:
            self._may.setdefault(fate, set()).add(because)

    def look(self, seen: str, now: float) -> None:
        """What it is after the step."""
        allowed = self._may or {self.fate: set()}
        assert seen in allowed, f"{self.key} is {seen}, expected {sorted(allowed)}"
        if seen != self.fate and seen not in OPEN:
            self.over_at = now
            self.because = allowed[seen]
        self.fate = seen
        self._may = {}


@attrs.define(eq=False)
class Call(Fated):
    waits_until: float
    """When its request has waited long enough."""
    ttl: float
    fate: str = attrs.field(default="in_flight", kw_only=True)
    expires: float = math.inf
    task_id: str | None = None

    @property
    def due_at(self) -> float:
        return self.waits_until if self.fate == "in_flight" else self.expires

    def due(self, now: float, *, is_full: bool) -> None:
        """Time has come as far as this."""
        if self.fate == "in_flight" and self.waits_until <= now:
            self.may("working", "patience")
            if is_full:
                self.may("failed", "limit")
        if self.fate == "working" and self.expires <= now:
            self.may("expired", "ttl")

    def facts(self) -> list[Fact]:
        if self.task_id is None:
            return []
        finished = FINISHED.get(self.fate)
        told = ["task_created", *([finished] if finished else [])]
        return [(event, self.task_id) for event in told]


@attrs.define(eq=False)
class Question(Fated):
    kind: str
    id: str
    expires: float
    fate: str = attrs.field(default="pending", kw_only=True)
    is_withdrawn: bool = False

    def due(self, now: float) -> None:
        if self.expires <= now:
            self.may("expired", "timeout")

    def facts(self) -> list[Fact]:
        told = ["request", *([ENDS[self.fate]] if self.fate in ENDS else [])]
        return [(f"{self.kind}_{event}", self.id) for event in told]


@attrs.define(eq=False)
class Timer:
    id: str
    fires: float
    status: str = "active"
    _may: set[str] = attrs.field(factory=set, init=False)

    def may(self, status: str) -> None:
        if self.status == "active":
            self._may.add(status)

    def look(self, seen: str) -> None:
        assert seen in (self._may or {self.status})
        self.status, self._may = seen, set()

    def facts(self) -> list[Fact]:
        return [("timer_expired", self.id)] if self.status == "fired" else []


@attrs.define(eq=False)
class Life:
    """One session."""

    secret: str
    principal: str
    used_at: float
    """When something of it happened last."""
    calls: list[Call] = attrs.field(factory=list, init=False)
    questions: list[Question] = attrs.field(factory=list, init=False)
    timers: list[Timer] = attrs.field(factory=list, init=False)
    notices: list[str] = attrs.field(factory=list, init=False)
    """What its servers have said of their own accord."""
    is_over: bool = attrs.field(default=False, init=False)

    def of(self, *fates: str) -> list[Call]:
        return [call for call in self.calls if call.fate in fates]

    def open_questions(self) -> list[Question]:
        return [question for question in self.questions if question.is_open]

    def has_work(self) -> bool:
        return bool(
            self.of(*OPEN)
            or self.open_questions()
            or any(timer.status == "active" for timer in self.timers)
        )

    def pass_to(self, now: float, tasks: int) -> None:
        is_full = len(self.of("in_flight", "working")) > tasks
        for call in self.of(*OPEN):
            call.due(now, is_full=is_full)
        for question in self.open_questions():
            question.due(now)
        for timer in self.timers:
            if timer.status == "active" and timer.fires <= now:
                timer.may("fired")
                self.used_at = now

    def next_due(self, now: float) -> float:
        """When something comes to its time, after *now*."""
        times = [call.due_at for call in self.of(*OPEN)]
        times += [question.expires for question in self.open_questions()]
        times += [timer.fires for timer in self.timers if timer.status == "active"]
        return min((at for at in times if at > now), default=math.inf)

    def loses(self, server: str, is_sent: Callable[[Call], bool], because: str) -> None:
        """The connection to that server is gone."""
        for call in self.of(*OPEN):
            if call.server == server and is_sent(call):
                call.may("failed", because)
        for question in self.open_questions():
            if question.server == server:
                question.may("rejected", because)

    def facts(self) -> Counter[Fact]:
        """The events there must have been, of everything that this model knows."""
        found = Counter[Fact]()
        for call in self.calls:
            found.update(call.facts())
        for question in self.questions:
            found.update(question.facts())
        for timer in self.timers:
            found.update(timer.facts())
        found.update(("notification", notice) for notice in self.notices)
        return found


@attrs.define(eq=False)
class Names:
    """Which servers there are, for whom."""

    configured: set[str]
    added: dict[str, dict[str, str]] = attrs.field(factory=dict, init=False)
    """By principal: names, and what they lead to."""

    def of(self, principal: str) -> set[str]:
        return self.configured | self.added.get(principal, {}).keys()

    def add(self, principal: str, name: str, target: str) -> None:
        self.added.setdefault(principal, {})[name] = target

    def target(self, principal: str, name: str) -> str | None:
        return self.added.get(principal, {}).get(name)

    def remove(self, principal: str, name: str) -> None:
        if name in self.configured:
            self.configured.remove(name)
            for names in self.added.values():
                names.pop(name, None)
        else:
            del self.added[principal][name]


def fact_of(event: Mapping[str, object]) -> Fact | None:
    """What an event says, as clients see it; None if this model does not know of such."""
    kind, data = str(event["type"]), event["data"]
    assert isinstance(data, Mapping)
    if kind == "notification":
        return kind, str(data["params"]["key"])
    for key in ("taskId", "requestId", "timerId"):
        if key in data:
            return kind, str(data[key])
    return None
