"""What a client of the handshake era is sent of a question, and what once that is over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest
import trio
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId
from trio.testing import MockClock, wait_all_tasks_blocked

from emceepee_trio.front.asking.backchannel import Backchannel
from emceepee_trio.session.questions.question import Question
from emceepee_trio.session.questions.relay import Askers, CannotBeAsked

QUESTION = Question("q", "elicitation", "x", "then", {"message": "name?", "requestedSchema": {}})
ADA = {"action": "accept", "content": {"name": "Ada"}}


@attrs.define(eq=False)
class Wire:
    """To the client."""

    asked: list[JSONRPCRequest] = attrs.field(factory=list)
    told: list[JSONRPCNotification] = attrs.field(factory=list)

    async def send(self, message: JSONRPCRequest, about: RequestId | None) -> None:
        self.asked.append(message)

    def note(self, message: JSONRPCNotification, about: RequestId | None) -> None:
        self.told.append(message)

    def reaches(self) -> bool:
        return True


def joined(nursery: trio.Nursery) -> tuple[Backchannel, Wire]:
    relay = Askers("s", nursery, lambda: "id", lambda server, kind, view: True)
    wire = Wire()
    backchannel = Backchannel(cast(Any, SimpleNamespace(relay=relay)), wire)
    joins(backchannel)
    return backchannel, wire


def joins(backchannel: Backchannel) -> None:
    params: dict[str, Any] = {"capabilities": {"elicitation": {}}}
    hello = JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=params)
    backchannel.observe(hello)
    done = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
    backchannel.observe(done)


async def test_it_is_told_once_that_it_is_not_asked_any_more(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        backchannel, wire = joined(nursery)

        async def ask() -> None:
            with pytest.raises(CannotBeAsked):
                await backchannel._anytime.ask(QUESTION)

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        (asked,) = wire.asked
        backchannel.withdraw(QUESTION.id)
        backchannel.withdraw(QUESTION.id)
    (told,) = wire.told
    assert told.method == "notifications/cancelled"
    assert told.params is not None
    assert told.params["requestId"] == asked.id


async def test_one_that_has_lost_its_streams_is_asked_anew_as_it_joins(
    autojump_clock: MockClock,
) -> None:
    answers = []
    async with trio.open_nursery() as nursery:
        backchannel, wire = joined(nursery)

        async def ask() -> None:
            answers.append(await backchannel._anytime.ask(QUESTION))
            nursery.cancel_scope.cancel("answered")

        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        backchannel.start_over(())
        joins(backchannel)
        await wait_all_tasks_blocked()
        assert [each.params for each in wire.asked] == [QUESTION.params] * 2
        first, second = wire.asked
        assert first.id != second.id
        for each in wire.asked:
            backchannel.observe(JSONRPCResponse(jsonrpc="2.0", id=each.id, result=ADA))
    assert answers == [ADA]
    assert wire.told == []


async def test_what_it_has_yet_to_read_is_not_asked_twice(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        backchannel, wire = joined(nursery)
        nursery.start_soon(backchannel._anytime.ask, QUESTION)
        await wait_all_tasks_blocked()
        backchannel.start_over({str(wire.asked[0].id)})
        joins(backchannel)
        await wait_all_tasks_blocked()
        assert len(wire.asked) == 1
        nursery.cancel_scope.cancel("the test is over")
