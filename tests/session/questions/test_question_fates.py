"""Answers, expiries, withdrawals, deletions that meet in one tick: one wins, all hear the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
from mcp import MCPError

from emceepee_trio.config import Limits
from emceepee_trio.model.events import TimerExpired
from emceepee_trio.model.states import QuestionState
from emceepee_trio.session.questions.questions import Questions
from emceepee_trio.session.timers import Timers
from parts import (
    MOMENT,
    Told,
    at_the_moment,
    in_many_orders,
    just_before,
    late,
    mock_clock,
    new_ids,
    wall,
)


@attrs.define(eq=False)
class Asked:
    """A question, and what its backend gets."""

    questions: Questions
    told: Told = attrs.field(factory=Told)
    got: list[Any] = attrs.field(factory=list)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def ask(self) -> None:
        with self.scope:
            try:
                asked = self.questions.ask("b", "elicitation", {}, lambda: "withdrawn_by_server")
                self.got.append(await asked)
            except MCPError as error:
                self.got.append(error.error.message)

    def cancel(self) -> bool:
        """Whether the client was told that its cancellation counts."""
        for question in self.questions.open("elicitation"):
            self.questions.cancel(question, "not today")
            return True
        return False

    def answer(self) -> bool:
        """Whether the client was told that its answer counts."""
        for question in self.questions.open("elicitation"):
            self.questions.answer(question, QuestionState.ACCEPTED, {"action": "accept"})
            return True
        return False


Rival = tuple[Callable[..., Awaitable[None]], tuple[Any, ...]]


async def meet(race: Callable[[Asked], list[Rival]], patience: float = MOMENT) -> Asked:
    """A question, and what the rivals made of it."""
    told = Told()
    limits = attrs.evolve(Limits(), question_timeout_ms=round(patience * 1000))
    asked = Asked(Questions(limits, told, new_ids(), wall, "s"), told)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asked.ask)
        for rival, args in race(asked):
            nursery.start_soon(rival, *args)
    assert asked.questions.open("elicitation") == []
    return asked


def test_an_answer_and_the_expiry_of_its_question() -> None:
    async def race(order: int) -> bool:
        counts: list[bool] = []

        def rivals(asked: Asked) -> list[Rival]:
            answer = lambda: counts.append(asked.answer())  # noqa: E731 - short, and used at once
            if order % 2:
                return [(just_before, (mock_clock(), answer, late(order)))]
            return [(at_the_moment, (answer, late(order)))]

        asked = await meet(rivals)
        if counts == [True]:
            assert asked.got == [{"action": "accept"}]
            assert asked.told.types == ["elicitation_request"]
        else:
            assert asked.got == ["nobody answered within 10000 ms"]
            assert asked.told.types == ["elicitation_request", "elicitation_expired"]
        return counts[0]

    assert set(in_many_orders(race)) == {True, False}


def test_an_answer_and_the_withdrawal_of_its_question() -> None:
    async def race(order: int) -> bool:
        counts: list[bool] = []
        early, later = (0, late(order)) if order % 2 else (late(order), 0)
        asked = await meet(
            lambda asked: [
                (at_the_moment, (lambda: counts.append(asked.answer()), early)),
                (at_the_moment, (asked.scope.cancel, later)),
            ],
            patience=60,
        )
        # The client hears of a withdrawal exactly if its answer did not count.
        withdrawn = ["elicitation_cancelled"] * (counts == [False])
        assert asked.told.types == ["elicitation_request", *withdrawn]
        # Never an answer that the client was not told of.
        assert asked.got == [] or counts == [True]
        return counts[0]

    assert set(in_many_orders(race)) == {True, False}


def test_two_answers_to_one_question() -> None:
    async def race(order: int) -> None:
        counts: list[bool] = []
        asked = await meet(
            lambda asked: [
                (at_the_moment, (lambda: counts.append(asked.answer()), hops))
                for hops in (0, late(order))
            ],
            patience=60,
        )
        assert counts == [True, False]
        assert asked.got == [{"action": "accept"}]
        assert asked.told.types == ["elicitation_request"]

    in_many_orders(race)


def test_an_answer_and_the_cancellation_of_its_question() -> None:
    async def race(order: int) -> str:
        said: dict[str, bool] = {}
        early, later = (0, late(order)) if order % 2 else (late(order), 0)
        asked = await meet(
            lambda asked: [
                (at_the_moment, (lambda: said.update(answered=asked.answer()), early)),
                (at_the_moment, (lambda: said.update(cancelled=asked.cancel()), later)),
            ],
            patience=60,
        )
        (fate,) = (rival for rival, counts in said.items() if counts)
        assert asked.got == [{"action": "accept" if fate == "answered" else "cancel"}]
        cancelled = ["elicitation_cancelled"] * (fate == "cancelled")
        assert asked.told.types == ["elicitation_request", *cancelled]
        return fate

    assert set(in_many_orders(race)) == {"answered", "cancelled"}


def test_a_cancellation_and_the_expiry_of_its_question() -> None:
    async def race(order: int) -> bool:
        counts: list[bool] = []

        def rivals(asked: Asked) -> list[Rival]:
            cancel = lambda: counts.append(asked.cancel())  # noqa: E731
            if order % 2:
                return [(just_before, (mock_clock(), cancel, late(order)))]
            return [(at_the_moment, (cancel, late(order)))]

        asked = await meet(rivals)
        fate = "cancelled" if counts == [True] else "expired"
        assert asked.told.types == ["elicitation_request", f"elicitation_{fate}"]
        assert (asked.got == [{"action": "cancel"}]) == counts[0]
        return counts[0]

    assert set(in_many_orders(race)) == {True, False}


def test_a_timer_that_fires_and_its_deletion() -> None:
    async def race(order: int) -> str:
        told = Told()
        async with trio.open_nursery() as nursery:
            timers = Timers(nursery, told, new_ids(), wall, "s")
            timer = timers.set(round(MOMENT * 1000), "tea", interval=False)
            said: list[str] = []
            nursery.start_soon(
                at_the_moment,
                lambda: said.append(timers.delete(timer.timer_id).status),
                late(order),
            )
        assert said == [timer.status]
        assert len(told.of(TimerExpired)) == timer.fire_count == (timer.status == "fired")
        return timer.status

    assert set(in_many_orders(race)) == {"fired", "deleted"}
