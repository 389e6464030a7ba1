"""Whether anybody uses a server, and since when nobody does. Knows neither."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager

import attrs
import trio


@attrs.define(eq=False)
class Uses:
    last: float = attrs.field(default=-math.inf, init=False)
    """When the last one has ended, on trio's clock."""
    _count: int = attrs.field(default=0, init=False)

    def one(self) -> AbstractContextManager[object]:
        """Around one, whatever is waited for in it."""
        return self

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        self.touch()

    def touch(self) -> None:
        self.last = trio.current_time()

    def __bool__(self) -> bool:
        return self._count > 0
