"""When a connection that was lost, or could not be made, is tried again; and when no more.

Pure: it is told the time, and given the dice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from ..config import Retry
from ..config.bounds import RETRY_RESET_MS
from ..model.delays import backoff


@attrs.define(eq=False)
class Retries:
    """The tries of one backend."""

    retry: Retry
    _chance: Callable[[], float]
    attempt: int = attrs.field(default=0, init=False)
    """Failed tries and lost connections in a row."""
    _delays: Iterator[float] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._delays = self._new_delays()

    def lost(self, now: float, connected_at: float) -> float | None:
        """A connection that was made then is lost; when the next try follows by itself."""
        if now - connected_at > RETRY_RESET_MS / 1000:
            self.attempt, self._delays = 0, self._new_delays()
        return self.failed(now)

    def failed(self, now: float, *, final: bool = False) -> float | None:
        """A try failed, or nothing is connected any more; when the next follows by itself."""
        self.attempt += 1
        retry, most = self.retry, self.retry.max_attempts
        again = retry.enabled and (most is None or self.attempt <= most) and not final
        return now + next(self._delays) if again else None

    def _new_delays(self) -> Iterator[float]:
        return backoff(
            self.retry.base_delay_ms / 1000,
            self.retry.max_delay_ms / 1000,
            multiplier=self.retry.multiplier,
            jitter=self.retry.jitter,
            chance=self._chance,
        )
