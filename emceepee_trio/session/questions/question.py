"""One question of a backend, as others see it. `questions.py` opens it and decides its fate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import attrs

from ...backend.connections.callbacks import NO_CALL
from ...model.states import QuestionState
from ...waits.slot import Slot

Kind = Literal["elicitation", "sampling"]


def nobody() -> None:
    """Is asked, so nobody is told."""


@attrs.define(eq=False)
class Question:
    id: str
    kind: Kind
    server: str
    timestamp: str
    params: Mapping[str, Any]
    call: str | None = NO_CALL
    """The call that it is asked for, by its id; None if its server does not say."""
    state: QuestionState = QuestionState.PENDING
    asked_at: float = 0.0
    """On trio's clock."""
    size: int = 0
    """About as many bytes as its params have."""
    concerns: Sequence[str] = ()
    """Ids of the calls that may wait for it, oldest first."""
    tell: Callable[[], object] = lambda: None
    """Wakes who waits for those."""
    key: str | None = None
    """What its server calls it, if it has a name for it."""
    is_relayed: bool = attrs.field(default=False, init=False)
    """The client itself has been asked, and has not refused."""
    withdraw: Callable[[], object] = attrs.field(default=nobody, init=False)
    """Tells who is asked that it is over. Called as it is closed: nobody hears sooner of that."""
    slot: Slot[dict[str, Any]] = attrs.field(factory=Slot, init=False)

    @property
    def is_open(self) -> bool:
        return not self.slot.is_settled

    @property
    def mode(self) -> str:
        mode = self.params.get("mode")
        return mode if isinstance(mode, str) else "form"

    def brief(self) -> dict[str, Any]:
        """As it stands in every response while it is open."""
        short = self.reference()
        if self.kind == "elicitation":
            short |= {"message": self.params.get("message"), "mode": self.mode}
            short |= {k: self.params[k] for k in ("requestedSchema", "url") if k in self.params}
        return short

    def reference(self) -> dict[str, Any]:
        """As it stands where it is told elsewhere."""
        return {"requestId": self.id, "server": self.server, **self.mark}

    @property
    def mark(self) -> dict[str, Any]:
        """Of one that nobody shall answer for the client, who is asked."""
        return {"relayed": True} if self.is_relayed else {}

    def name(self) -> dict[str, Any]:
        """As it stands there if it is too large for that."""
        return self.reference() | {"too_large": True}

    def whole(self) -> dict[str, Any]:
        """As get_elicitations and get_sampling_requests list it."""
        shown = {**self.reference(), "timestamp": self.timestamp}
        if self.kind == "sampling":
            return {**shown, "params": dict(self.params)}
        extras = ("requestedSchema", "url", "elicitationId")
        return {
            **shown,
            "mode": self.mode,
            "message": self.params.get("message"),
            **{key: self.params[key] for key in extras if key in self.params},
        }
