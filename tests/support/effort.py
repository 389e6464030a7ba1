"""How much something does, counted and not timed: the same on a busy machine as on an idle one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def effort(act: Callable[[], object]) -> int:
    """Calls, lines and returns of Python that *act* goes through; loops in C are not seen."""
    steps = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    gc.disable()  # it calls functions of others, whenever it likes
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
        gc.enable()
    return steps
