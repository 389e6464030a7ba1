"""What a client is called in whose request a modern server has asked something."""

from __future__ import annotations

from typing import Any, cast

import pytest
from mcp import MCPError

from emceepee_trio.front.faces.face import Incoming
from emceepee_trio.front.faces.one_server.passed import MAX_PASSED, MAX_STATE, PassedOn

ASKED = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}
DONE = {"resultType": "complete", "content": []}
CALL = {"name": "tool", "arguments": {"n": 1}}


def incoming(method: str = "tools/call", **params: Any) -> Incoming:
    unused = cast("Any", None)
    return Incoming(1, method, {**CALL, **params}, "2026-07-28", unused, unused)


async def told(rounds: PassedOn, asked: Incoming, **result: Any) -> Any:
    return await rounds.told(asked, await rounds.again(asked), result)


async def test_the_state_of_a_server_has_another_name_outside() -> None:
    rounds = PassedOn()
    first = await told(rounds, incoming(), **ASKED, requestState="theirs")
    assert first["inputRequests"] == ASKED["inputRequests"]
    assert len(bytes.fromhex(first["requestState"])) == 16
    again = incoming(requestState=first["requestState"], inputResponses={"q": {}}, _meta={"x": 1})
    found = await rounds.again(again)
    assert found is not None
    assert found.state == "theirs"
    second = await rounds.told(again, found, {**ASKED})
    assert second["requestState"] != first["requestState"]
    stateless = await rounds.again(incoming(requestState=second["requestState"]))
    assert stateless is not None
    assert stateless.state is None


@pytest.mark.parametrize(
    "other",
    [
        incoming("prompts/get"),
        incoming(name="other"),
        incoming(arguments={"n": 2}),
        incoming(arguments={}),
    ],
)
async def test_it_holds_for_the_request_alone_that_it_was_given_to(other: Incoming) -> None:
    rounds = PassedOn()
    name = (await told(rounds, incoming(), **ASKED))["requestState"]
    foreign = incoming(other.method, **{**other.params, "requestState": name})
    for rejected, where in ((foreign, rounds), (incoming(requestState=name), PassedOn())):
        with pytest.raises(MCPError) as caught:
            await where.again(rejected)
        assert caught.value.error.code == -32602


@pytest.mark.parametrize("wrong", ["", "0" * 32, 7, {}, ["x"]])
async def test_what_is_no_state_is_refused(wrong: Any) -> None:
    with pytest.raises(MCPError) as caught:
        await PassedOn().again(incoming(requestState=wrong))
    assert caught.value.error.code == -32602


async def test_it_may_come_again_until_there_is_a_result() -> None:
    rounds = PassedOn()
    first = (await told(rounds, incoming(), **ASKED))["requestState"]
    second = (await told(rounds, incoming(requestState=first), **ASKED))["requestState"]
    third = (await told(rounds, incoming(requestState=first), **ASKED))["requestState"]
    other = (await told(rounds, incoming(), **ASKED))["requestState"]
    assert await told(rounds, incoming(requestState=second), **DONE) == DONE
    for over in (first, second, third):
        with pytest.raises(MCPError):
            await rounds.again(incoming(requestState=over))
    assert await told(rounds, incoming(requestState=other), **DONE) == DONE


async def test_the_oldest_makes_room_and_a_long_state_is_refused() -> None:
    rounds = PassedOn()
    names = [
        (await told(rounds, incoming(), **ASKED))["requestState"] for _ in range(MAX_PASSED + 1)
    ]
    assert await rounds.again(incoming(requestState=names[1])) is not None
    with pytest.raises(MCPError):
        await rounds.again(incoming(requestState=names[0]))
    for state in ("x" * (MAX_STATE + 1), 7):
        with pytest.raises(MCPError, match=str(MAX_STATE)):
            await told(rounds, incoming(), **ASKED, requestState=state)
