"""The order in which trio takes what is runnable: chosen by a number, and the same every time.

Trio runs its tasks in batches, and promises nothing of the order in a batch. By itself it turns a
batch round or not; its plugin for hypothesis has it shuffle instead, as 0 says in every example.
With other numbers, tasks that are due in one tick meet either way, and meet the same way again
when a failure is replayed.
"""

from __future__ import annotations

from hypothesis import strategies as st
from trio._core import _run

USUAL = 0
"""What hypothesis begins every example with."""

orders = st.integers(USUAL, 2**16)


def take_order(order: int) -> None:
    """From here on trio shuffles each batch as *order* says, whatever came before."""
    assert _run._ALLOW_DETERMINISTIC_SCHEDULING, "trio's plugin for hypothesis is not loaded"
    _run._r.seed(order)
