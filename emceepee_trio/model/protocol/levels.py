"""How bad a log message is."""

from __future__ import annotations

from collections.abc import Callable

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Of RFC 5424, from the least to the worst."""


def at_least(level: str) -> Callable[[str], bool]:
    """A test for *level* and worse. A level nobody knows counts as info."""
    floor = LEVELS.index(level)
    return lambda other: LEVELS.index(other if other in LEVELS else "info") >= floor
