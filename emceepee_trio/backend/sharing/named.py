"""Ids that a server has given to things of one lease, the newest of them."""

from __future__ import annotations

from typing import Any

import attrs

MOST = 1000
"""Remembered; the oldest makes room, and is nobody's from then on."""


@attrs.define(eq=False)
class GivenNames:
    _open: dict[str, bool] = attrs.field(factory=dict, init=False)
    """Whether each goes on."""

    def add(self, name: Any, *, is_open: bool = False) -> None:
        """What is no string names nothing."""
        if isinstance(name, str):
            if name not in self._open and len(self._open) >= MOST:
                del self._open[next(iter(self._open))]
            self._open[name] = is_open

    def close(self, name: Any) -> None:
        if name in self:
            self._open[name] = False

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._open

    @property
    def open(self) -> list[str]:
        return [name for name, is_open in self._open.items() if is_open]
