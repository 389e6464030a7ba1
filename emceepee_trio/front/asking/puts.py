"""What a client of the modern era is asked in the answer to one request, until it has said.

Each thing that is asked has a key, under which the retry brings what its client says. What a server
of the handshake era asks at once comes here one by one, and is asked together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import trio

from ...backend.connections.callbacks import asked_as
from ...session.questions.relay import CannotBeAsked
from ...waits.bell import Bell
from ...waits.slot import Slot

TOGETHER = 0.1
"""Seconds to wait for what else a server of the handshake era asks: it asks one by one."""


@attrs.define(eq=False)
class Put:
    """What a client is asked, until it is answered or nobody asks it any more."""

    said: dict[str, Any]
    """As its client gets it."""
    is_for: Callable[[Mapping[str, Any]], bool]
    """Whether a client that can this can take it."""
    slot: Slot[dict[str, Any]] = attrs.field(factory=Slot, init=False)


@attrs.define(eq=False)
class Puts:
    """All that is put to the client of one request."""

    news: Bell
    """Rung with each of them."""
    early: dict[str, Any] = attrs.field(factory=dict, init=False)
    """Answers that came before the questions, by the keys of those."""
    asks_at: float = attrs.field(default=-math.inf, init=False)
    """When its client is asked what is put to it."""
    _put: dict[str, Put] = attrs.field(factory=dict, init=False)
    """What it is asked, by the keys that it is given."""
    _keys: set[str] = attrs.field(factory=set, init=False)
    """All that it was given."""

    def __bool__(self) -> bool:
        """Something is put, answered or not."""
        return bool(self._put)

    def unanswered(self) -> dict[str, dict[str, Any]]:
        """What is to be asked now, as its client gets it, by key."""
        return {key: put.said for key, put in self._put.items() if not put.slot.is_settled}

    def key(self, wanted: str, otherwise: str) -> str:
        """One that its client has not been given yet."""
        key = otherwise if wanted in self._keys else wanted
        self._keys.add(key)
        return key

    async def answer(self, key: str, put: Put) -> dict[str, Any]:
        """What its client says; it stands until :meth:`take_away`.

        Raises:
            CannotBeAsked: it will not say anything.
        """
        early = self.early.pop(key, None)
        if isinstance(early, Mapping):
            return dict(early)
        if not self._put and asked_as.get() is None:
            self.asks_at = trio.current_time() + TOGETHER
        self._put[key] = put
        self.news.ring()
        return await put.slot.wait_result()

    def take_away(self, key: str) -> None:
        self._put.pop(key, None)

    def take(self, answers: object) -> None:
        """What a retry has brought; of what is not asked any more, nothing."""
        for key, answer in answers.items() if isinstance(answers, Mapping) else ():
            if key in self._put and isinstance(answer, Mapping):
                self._put[key].slot.set(dict(answer))

    def fail_for(self, capabilities: Mapping[str, Any]) -> None:
        """Those that a client with these *capabilities* cannot take."""
        for put in self._put.values():
            if not put.is_for(capabilities):
                put.slot.fail(CannotBeAsked())

    def fail_all(self) -> None:
        for put in self._put.values():
            put.slot.fail(CannotBeAsked())
