"""Progress for a client that asked for it, while a tool of ours works or waits."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
import trio

from emceepee_client import Emceepee, Era, open_emceepee
from emceepee_trio.front.progress import Progress
from fake_backends import demo, raw
from like import Like

Report = tuple[float, float | None, str | None]


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> Era:
    era: Era = request.param
    return era


@attrs.define(eq=False)
class Reports:
    """What a client was told; the SDK calls it."""

    seen: list[Report] = attrs.field(factory=list)
    enough: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.seen.append((progress, total, message))
        if len(self.seen) == 3:
            self.enough.set()


# Longer than anybody waits: the tests end it.
SLOW: dict[str, Any] = {"server": "demo", "tool": "slow", "args": {"seconds": 100, "steps": 1000}}


async def reports_of(emceepee: Emceepee, tool: str, arguments: dict[str, Any]) -> list[Report]:
    """The first of a call that does not end."""
    reports = Reports()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(emceepee.call_with, {"on_progress": reports}, tool, arguments)
        await reports.enough.wait()
        nursery.cancel_scope.cancel()
    return reports.seen


def check(seen: list[Report]) -> None:
    steps = [progress for progress, _, _ in seen]
    assert steps == sorted(set(steps))
    assert set(seen) <= {(n, 1000, f"step {n} of 1000") for n in range(1, 1001)}


@pytest.mark.parametrize("its_era", ["handshake", "modern"])
async def test_progress_of_a_server_is_handed_on(tmp_path: Path, era: Era, its_era: str) -> None:
    async with open_emceepee(tmp_path, {"demo": demo() | {"era": its_era}}, era=era) as emceepee:
        check(await reports_of(emceepee, "execute_tool", SLOW))


async def test_progress_of_a_task_is_handed_to_who_waits_for_it(tmp_path: Path) -> None:
    async with open_emceepee(tmp_path, {"demo": demo()}) as emceepee:
        task_id = await emceepee.start_task("demo", "slow", SLOW["args"])
        seen = await reports_of(emceepee, "get_task_result", {"task_id": task_id})
        check(seen)
        again = await reports_of(emceepee, "get_task_result", {"task_id": task_id})
        assert again[0][0] > seen[-1][0]
        task = (await emceepee.says("get_task", task_id=task_id))["task"]
        assert task["status"] == "working"
        assert task["status_message"] == Like(r"step \d+ of 1000")


async def test_nobody_is_told_who_did_not_ask(tmp_path: Path, era: Era) -> None:
    """Anything else on the wire than what was asked for would be no answer to the SDK."""
    said: list[Any] = []
    async with open_emceepee(tmp_path, {"raw": raw()}, era=era) as emceepee:
        dispatcher = cast("Any", emceepee.client.session._dispatcher)
        intercept = dispatcher._on_notify_intercept

        def listen(method: str, params: Any) -> Any:
            said.append(method)
            return intercept(method, params)

        dispatcher._on_notify_intercept = listen
        assert (await emceepee.execute("raw", "progress")).text == "progressed 3 times"
        await emceepee.sent()
    assert said == []


# -- the clockwork, on a clock that jumps ----------------------------------------------------------


@attrs.define(eq=False)
class Told:
    """What a client was told, and when it reads."""

    told: list[Report] = attrs.field(factory=list)
    stalled: trio.Event | None = None

    async def report(
        self, token: object, progress: float, total: float | None, message: str | None
    ) -> None:
        assert token == "token"
        self.told.append((progress, total, message))
        if self.stalled is not None:
            await self.stalled.wait()


def progress_to(client: Told) -> Progress:
    return Progress(client.report, "token")


async def reported(work: Callable[[Progress], Awaitable[None]]) -> list[Report]:
    client = Told()
    progress = progress_to(client)
    await progress.report_while(lambda: work(progress))
    await trio.sleep(1000)  # nothing comes behind the answer
    return client.told


async def test_silence_is_filled_every_ten_seconds(autojump_clock: trio.testing.MockClock) -> None:
    async def work(_: Progress) -> None:
        await trio.sleep(35)

    told = await reported(work)
    assert [message for _, _, message in told] == [f"working for {n} s" for n in (10, 20, 30)]
    numbers = [progress for progress, _, _ in told]
    assert numbers == sorted(set(numbers))
    assert 0 < numbers[0] < numbers[-1] < 1e-300


async def test_fillers_leave_room_for_what_the_server_says(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def work(progress: Progress) -> None:
        progress.heard({"progress": 1, "total": 3, "message": "one"})
        await trio.sleep(15)
        progress.heard({"progress": 2, "total": 3})
        await trio.sleep(1)

    told = await reported(work)
    filler = math.nextafter(1, 2)
    assert told == [(1, 3, "one"), (filler, 3, "working for 10 s"), (2, 3, None)]


async def test_only_what_increases_is_told(autojump_clock: trio.testing.MockClock) -> None:
    async def work(progress: Progress) -> None:
        for said in (2, 1, 2, -5, 0, 3):
            progress.heard({"progress": said})
            await trio.sleep(1)

    assert [progress for progress, _, _ in await reported(work)] == [2, 3]


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"progress": "3"},
        {"progress": None},
        {"progress": math.nan},
        {"progress": math.inf},
        {"progress": 10**400},
    ],
)
async def test_what_is_no_progress_is_not_told(
    autojump_clock: trio.testing.MockClock, said: dict[str, Any]
) -> None:
    async def work(progress: Progress) -> None:
        progress.heard(said)
        await trio.sleep(1)
        progress.heard({"progress": 1, "total": said.get("progress"), "message": 5})
        await trio.sleep(1)

    assert await reported(work) == [(1, None, None)]


async def test_a_slow_client_gets_the_newest(autojump_clock: trio.testing.MockClock) -> None:
    client = Told(stalled=trio.Event())
    progress = progress_to(client)

    async def work() -> None:
        for step in range(1, 100):
            progress.heard({"progress": step})
            await trio.sleep(0.01)
        assert client.stalled is not None
        client.stalled.set()
        await trio.sleep(1)

    await progress.report_while(work)
    assert [number for number, _, _ in client.told] == [1, *range(84, 100)]


async def test_what_comes_at_once_and_right_before_the_answer_is_told_from_zero_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def work(progress: Progress) -> None:
        for step in (-1, 0, 50, 100):
            progress.heard({"progress": step})

    assert [step for step, _, _ in await reported(work)] == [0, 50, 100]


async def test_the_outcome_of_the_work_is_that_of_the_whole(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def answers() -> str:
        return "answer"

    async def fails() -> str:
        raise LookupError("as it is, in no group")

    assert await progress_to(Told()).report_while(answers) == "answer"
    with pytest.raises(LookupError, match="as it is"):
        await progress_to(Told()).report_while(fails)
