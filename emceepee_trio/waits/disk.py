"""Threads for what a disk does, which may take for ever: nobody waits for it who gives up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def on_disk(work: Callable[[], T]) -> T:
    """What *work* returns. It goes on where whoever asked for it is cancelled."""
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
