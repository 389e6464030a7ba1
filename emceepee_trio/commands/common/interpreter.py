"""How Python runs what serves many at once: nobody is to wait for what it does by itself."""

from __future__ import annotations

import gc
import sys

FULL = 50
"""Collections of what has lived for a while, between two that look at everything: five times as
many as Python would have. One costs all sessions several milliseconds, and a few long messages were
enough for it, though JSON is never garbage of that kind."""

SWITCH = 0.0005
"""Seconds for which a thread that works may keep the loop waiting, each time that this has waited
for anything: a tenth of what Python would let it have."""


def settle() -> None:
    """Once all is imported, and before anything runs.

    What is there stays until the end, so garbage is not looked for in it: with all that is imported
    a collection would take a tenth of a second.
    """
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, FULL)
    gc.freeze()
    sys.setswitchinterval(SWITCH)
