"""How much something does, counted and not timed: the same on a busy machine as on an idle one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import attrs


@attrs.define
class Steps:
    """Calls, lines and returns of Python; loops in C are not seen."""

    count: int = 0


@contextmanager
def efforts() -> Generator[Steps]:
    """Of all that runs in here, in whatever task; not of frames that are under way already."""
    steps = Steps()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        steps.count += 1
        return trace

    before = sys.gettrace()
    gc.disable()  # it calls functions of others, whenever it likes
    sys.settrace(trace)
    try:
        yield steps
    finally:
        sys.settrace(before)
        gc.enable()


def effort(act: Callable[[], object]) -> int:
    """What *act* goes through."""
    with efforts() as steps:
        act()
    return steps.count
