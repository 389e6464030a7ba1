"""When a connection that was lost, or could not be made, is tried again; and when no more."""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs
import trio

from ..config import Retry
from ..config.bounds import RETRY_RESET_MS
from ..model.delays import backoff


@attrs.define(eq=False)
class Retries:
    """The tries of one backend."""

    retry: Retry
    attempt: int = attrs.field(default=0, init=False)
    """Failed tries and lost connections in a row."""
    next_try: float | None = attrs.field(default=None, init=False)
    """When, on trio's clock."""
    _delays: Iterator[float] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._delays = self._new_delays()

    def lost(self, connected_at: float) -> bool:
        """A connection that was made then is lost; whether another try follows by itself."""
        if trio.current_time() - connected_at > RETRY_RESET_MS / 1000:
            self.attempt, self._delays = 0, self._new_delays()
        return self.plan()

    def plan(self, *, final: bool = False) -> bool:
        """A try failed, or nothing is connected any more; whether another follows by itself."""
        self.attempt += 1
        retry, most = self.retry, self.retry.max_attempts
        again = retry.enabled and (most is None or self.attempt <= most) and not final
        self.next_try = trio.current_time() + next(self._delays) if again else None
        return again

    @property
    def delay_ms(self) -> int:
        """Until the next try."""
        return max(0, round(((self.next_try or 0) - trio.current_time()) * 1000))

    def _new_delays(self) -> Iterator[float]:
        return backoff(
            self.retry.base_delay_ms / 1000,
            self.retry.max_delay_ms / 1000,
            multiplier=self.retry.multiplier,
            jitter=self.retry.jitter,
            chance=random.random,
        )
