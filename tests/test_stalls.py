from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from emceepee_trio.waits.watchdog import COLLECTION
from stalls import check_daemon, every_run_watched

BUSY = """
import trio

async def busy():
    await trio.lowlevel.checkpoint()
    sum(range(20_000_000))
    await trio.lowlevel.checkpoint()
"""


def of_elsewhere() -> Callable[[], Awaitable[None]]:
    found: dict[str, Any] = {}
    exec(compile(BUSY, "elsewhere.py", "exec"), found)
    busy: Callable[[], Awaitable[None]] = found["busy"]
    return busy


@pytest.mark.stalls("to see that it is noticed")
def test_a_task_for_which_all_had_to_wait_is_named() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:  # noqa: ASYNC112 - it is a task of its own
            nursery.start_soon(of_elsewhere(), name="the busy one")

    with pytest.raises(AssertionError, match=r"the busy one, [0-9]{3,} ms"):
        with every_run_watched(excused=False):
            trio.run(main)


def test_what_a_test_does_itself_is_its_own_affair() -> None:
    async def main() -> None:
        sum(range(20_000_000))
        await trio.lowlevel.checkpoint()

    trio.run(main)


def test_a_daemon_that_kept_all_waiting_fails_its_test() -> None:
    slow = {"event": "slow_step", "kind": "Link.run", "cpu_ms": 100}
    with pytest.raises(AssertionError, match="slow_step"):
        check_daemon([{"event": "session_created"}, slow])
    check_daemon([{**slow, "kind": COLLECTION}])
