"""Whether anybody uses a server, and since when nobody does. Knows neither."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

import attrs
import trio


@attrs.define(eq=False)
class Uses:
    last: float = attrs.field(default=-math.inf, init=False)
    """When the last one has ended, on trio's clock."""
    _count: int = attrs.field(default=0, init=False)

    @contextmanager
    def one(self) -> Generator[None]:
        """Around one, whatever is waited for in it."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self.touch()

    def touch(self) -> None:
        self.last = trio.current_time()

    def __bool__(self) -> bool:
        return self._count > 0
