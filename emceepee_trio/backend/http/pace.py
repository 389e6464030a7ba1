"""How often a stream that ends is asked for again, whatever its server would like.

Knows neither requests nor streams: whoever asks takes a turn first, and waits for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import attrs
import trio

from ...config import Retry
from ...config.bounds import MAX_RETRY_MS, RETRY_RESET_MS
from ...model.delays import backoff


@attrs.define(eq=False)
class Pace:
    """Of one stream. The first turn is at once; one that lasted makes pauses short again."""

    _retry: Retry
    _asked: float = attrs.field(default=-math.inf, init=False)
    """On trio's clock."""
    _delays: Iterator[float] | None = attrs.field(default=None, init=False)

    async def turn(self) -> None:
        """Wait until it may be asked for again, counted from when it was last."""
        lasted = trio.current_time() - self._asked
        if self._delays is None or lasted > RETRY_RESET_MS / 1000:
            self._delays = self._new_delays()
        await trio.sleep_until(self._asked + next(self._delays))
        self.asked()

    def asked(self) -> None:
        """It is, for the first time or without a turn; or the answer to that begins."""
        self._asked = trio.current_time()

    def _new_delays(self) -> Iterator[float]:
        return backoff(
            # Jitter only lengthens: the first pause is what the configuration says at least.
            self._retry.base_delay_ms / 1000 / (1 - min(self._retry.jitter, 0.5)),
            min(self._retry.max_delay_ms, MAX_RETRY_MS) / 1000,
            multiplier=self._retry.multiplier,
            jitter=min(self._retry.jitter, 0.5),
            chance=random.random,
        )
