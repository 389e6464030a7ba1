"""Calls that are asked in rounds before they are tasks of the protocol, and as such."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import META, Client, Json
from asgi_world import open_world
from emceepee_trio.config import Config, Server
from emceepee_trio.front.asking.rounds import LINGERS
from emceepee_trio.front.tasks import EXTENSION
from memory_peers import Peer, Peers
from rounds import FORM, Wanted, accepted
from sharers import ELICITATION, result

PATIENCE = 5
ABLE: Json = {"elicitation": {}, "extensions": {EXTENSION: {}}}


@attrs.define(eq=False)
class Scene:
    wanted: Wanted
    peer: Peer

    @property
    def client(self) -> Client:
        return self.wanted.client

    async def asks(self, number: int) -> None:
        """A modern server calls each of its questions the same, if it likes."""
        (call,) = self.peer.calls
        params = {"message": f"question {number}", "requestedSchema": FORM}
        if self.peer.is_modern:
            self.peer.needs(call, 1, ELICITATION, params)
        else:
            asked = {"jsonrpc": "2.0", "id": number, "method": ELICITATION, "params": params}
            self.peer.say(asked, call)
        await trio.sleep(1)
        self.wanted.read()

    async def answers(self, key: str) -> None:
        self.wanted.again({key: accepted("client")})
        await wait_all_tasks_blocked()
        self.wanted.read()

    async def ask(self, method: str, **params: Any) -> Json:
        meta = {f"{META}clientCapabilities": ABLE}
        said: Json = (await self.client.modern(method, meta=meta, **params).answer())["result"]
        return said


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def called(era: str) -> AsyncGenerator[Scene]:
    peers = Peers()
    server = Server("x", url="http://x/", era=era)  # type: ignore[arg-type]  # a word of a fixture
    with peers.in_place():
        async with open_world(Config(servers=(server,))) as world:
            wanted = Wanted(world.client("ada"), "t", PATIENCE, can=ABLE)
            wanted.send()
            await wait_all_tasks_blocked()
            (peer,) = peers.all
            yield Scene(wanted, peer)


async def test_no_call_is_a_task_while_its_client_has_a_question(
    era: str, autojump_clock: MockClock
) -> None:
    async with called(era) as scene:
        await scene.asks(1)
        (first,) = scene.wanted.asked
        await trio.sleep(LINGERS - 2 * PATIENCE)
        assert scene.wanted.results == []
        assert (await scene.client.modern_call("list_tasks"))["tasks"] == []
        await scene.answers(first)
        await trio.sleep(2 * PATIENCE)
        scene.wanted.read()
        (task,) = scene.wanted.results
        assert (task["resultType"], task["status"]) == ("task", "working")


async def test_what_is_asked_of_the_task_has_a_key_that_was_not_used_before(
    era: str, autojump_clock: MockClock
) -> None:
    async with called(era) as scene:
        await scene.asks(1)
        (first,) = scene.wanted.asked
        await scene.answers(first)
        await trio.sleep(2 * PATIENCE)
        scene.wanted.read()
        (task,) = scene.wanted.results
        await scene.asks(2)
        said = await scene.ask("tasks/get", taskId=task["taskId"])
        ((second, asked),) = said["inputRequests"].items()
        assert asked["params"]["message"] == "question 2"
        assert second != first
        # What belongs to the first says nothing of the second.
        late = {first: accepted("somebody else")}
        await scene.ask("tasks/update", taskId=task["taskId"], inputResponses=late)
        assert len(scene.peer.answers) == 1
        now = {second: accepted("client")}
        await scene.ask("tasks/update", taskId=task["taskId"], inputResponses=now)
        await wait_all_tasks_blocked()
        assert len(scene.peer.answers) == 2
        (call,) = scene.peer.calls
        scene.peer.answer(call, result("done"))
        await wait_all_tasks_blocked()
        said = await scene.ask("tasks/get", taskId=task["taskId"])
        assert (said["status"], said["result"]["content"][0]["text"]) == ("completed", "done")
        assert scene.peer.began == ["t"]


async def test_two_rounds_have_two_keys(era: str, autojump_clock: MockClock) -> None:
    async with called(era) as scene:
        keys = []
        for number in (1, 2):
            await scene.asks(number)
            ((key, message),) = scene.wanted.asked.items()
            assert message == f"question {number}"
            keys.append(key)
            await scene.answers(key)
        assert len(set(keys)) == 2
        assert len(scene.peer.answers) == 2
