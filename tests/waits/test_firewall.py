from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from emceepee_trio.waits.firewall import PAUSES, Firewall, begin, begin_lasting


def crashes(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """What was logged of them."""
    return [{**r.fields, "event": r.message} for r in caplog.records if r.exc_info]  # type: ignore[attr-defined]  # ours


@pytest.mark.parametrize(
    "bug",
    [
        KeyError("bug"),
        RecursionError(),
        OverflowError(),
        MemoryError(),
        AssertionError(),
        ExceptionGroup("", [KeyError()]),
        BaseExceptionGroup("", [ExceptionGroup("", [ValueError()])]),
    ],
    ids=repr,
)
def test_a_bug_is_logged_with_an_id_and_told(
    bug: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    with Firewall("x_crashed", told.append, fields={"x": 1}) as wall:
        raise bug
    assert told == [wall.log_id]
    assert crashes(caplog) == [{"event": "x_crashed", "x": 1, "log_id": wall.log_id}]
    assert caplog.records[0].exc_info is not None
    assert caplog.records[0].exc_info[1] is bug


def test_nothing_is_said_where_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    with Firewall("x_crashed") as wall:
        pass
    assert wall.log_id is None
    assert not caplog.records


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()], ids=repr)
def test_what_ends_the_process_passes(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(type(error)), Firewall("x_crashed"):
        raise error
    assert not caplog.records


def test_what_is_expected_passes_but_for_in_a_group(caplog: pytest.LogCaptureFixture) -> None:
    expected = (LookupError,)
    with pytest.raises(KeyError), Firewall("x_crashed", None, expected):
        raise KeyError
    assert not caplog.records
    # For whoever expects the bare one does not expect it so.
    with Firewall("x_crashed", None, expected) as wall:
        raise ExceptionGroup("", [KeyError()])
    assert crashes(caplog) == [{"event": "x_crashed", "log_id": wall.log_id}]


def test_one_that_cannot_even_fail_is_one_that_crashed(caplog: pytest.LogCaptureFixture) -> None:
    def failed(_: str) -> None:
        raise OSError("and another")

    with Firewall("x_crashed", failed) as wall:
        raise KeyError("bug")
    assert crashes(caplog) == [{"event": "x_crashed", "log_id": wall.log_id}]
    assert caplog.records[0].exc_info is not None
    with pytest.RaisesGroup(KeyError, OSError):
        raise caplog.records[0].exc_info[1] or AssertionError


async def test_a_cancellation_passes(caplog: pytest.LogCaptureFixture) -> None:
    with trio.CancelScope() as scope:
        scope.cancel("test")
        with Firewall("x_crashed"):
            await trio.sleep_forever()
        raise AssertionError("went on")
    assert scope.cancelled_caught
    assert not caplog.records


async def test_a_cancellation_passes_out_of_a_group_with_a_bug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A child that crashes as it is cancelled, beside one that does not."""

    async def crash_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("bug")

    with trio.CancelScope() as scope:
        with Firewall("x_crashed") as wall:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(crash_when_cancelled)
                nursery.start_soon(trio.sleep_forever)
                await trio.lowlevel.checkpoint()
                scope.cancel("test")
        raise AssertionError("went on")
    assert scope.cancelled_caught
    assert crashes(caplog) == [{"event": "x_crashed", "log_id": wall.log_id}]


async def test_siblings_go_on(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    did: list[str] = []

    async def crash() -> None:
        raise KeyError("bug")

    async def work() -> None:
        await trio.sleep(5)
        did.append("worked")

    async with trio.open_nursery() as nursery:
        begin(nursery, Firewall("x_crashed", lambda _: did.append("failed")), crash)
        begin(nursery, Firewall("y_crashed"), work)
    assert did == ["failed", "worked"]
    assert [crash["event"] for crash in crashes(caplog)] == ["x_crashed"]


async def test_a_task_has_the_name_of_what_it_does(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        begin(nursery, Firewall("x_crashed"), trio.sleep, 1)
        begin_lasting(nursery, "x_crashed", trio.sleep, 1)
        begin(nursery, Firewall("x_crashed"), trio.sleep, 1, name="x")
        names = {task.name.rpartition(".")[2] for task in nursery.child_tasks}
        assert names == {"sleep", "x"}
        assert {task.coro.__qualname__ for task in nursery.child_tasks} == {"sleep"}


def crashing_at(moments: list[float], crashes: int) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        moments.append(trio.current_time())
        if len(moments) <= crashes:
            raise KeyError("bug")
        await trio.sleep_forever()

    return run


async def test_what_has_to_last_begins_again_with_a_pause(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    moments: list[float] = []
    async with trio.open_nursery() as nursery:
        begin_lasting(nursery, "x_crashed", crashing_at(moments, 9), x=1)
        await trio.sleep(1000)
        nursery.cancel_scope.cancel("end of the test")
    # Ever longer ones, but not for ever longer.
    assert moments == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]
    found = crashes(caplog)
    assert [(crash["event"], crash["x"]) for crash in found] == [("x_crashed", 1)] * 9
    assert len({crash["log_id"] for crash in found}) == 9


async def test_what_has_lasted_begins_again_soon(autojump_clock: MockClock) -> None:
    moments: list[float] = []

    async def run() -> None:
        moments.append(trio.current_time())
        await trio.sleep(PAUSES[1])
        raise KeyError("bug")

    async with trio.open_nursery() as nursery:
        begin_lasting(nursery, "x_crashed", run)
        await trio.sleep(200)
        nursery.cancel_scope.cancel("end of the test")
    assert moments == [0, 61, 122, 183]


async def test_what_lasts_and_is_done_is_not_begun_again(autojump_clock: MockClock) -> None:
    moments: list[float] = []

    async def run() -> None:
        moments.append(trio.current_time())
        await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        begin_lasting(nursery, "x_crashed", run)
    assert moments == [0]
