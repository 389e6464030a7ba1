"""Deadlines that run only while somebody waits.

Knows neither who waits nor for what. A wait that is stopped has no deadline; one that goes on has
all of its time again, because each who waits is as patient as the one before.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class Patience:
    _waits: dict[trio.CancelScope, float] = attrs.field(factory=dict, init=False)
    _is_stopped: bool = attrs.field(default=False, init=False)

    @contextmanager
    def move_on_after(self, seconds: float) -> Generator[trio.CancelScope]:
        """As trio's, of the time in which somebody waits."""
        with trio.CancelScope() as scope:
            self._waits[scope] = seconds
            if not self._is_stopped:
                scope.deadline = trio.current_time() + seconds
            try:
                yield scope
            finally:
                del self._waits[scope]

    def stop(self) -> None:
        """Nobody waits now."""
        self._is_stopped = True
        for scope in self._waits:
            scope.deadline = math.inf

    def go_on(self) -> None:
        """Somebody does, from here on."""
        self._is_stopped = False
        for scope, seconds in self._waits.items():
            scope.deadline = trio.current_time() + seconds
