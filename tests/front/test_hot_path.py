"""What a request takes, against a yardstick that stays: so that nothing creeps into its way.

Counted, not timed (see `effort.py`), of the test's own client as well; the yardstick is trio alone,
so another Python or trio moves both.
"""

from __future__ import annotations

import trio
from trio.testing import MockClock

from asgi_client import Client, Exchange
from asgi_world import open_world
from effort import efforts
from emceepee_trio.config import Config, Server
from memory_peers import Peer, Peers

ROUNDS = 5
"""Of which the least counts: the order of tasks is drawn anew in each tick."""
MOST = {"ping": 0.4, "tools/list": 0.4, "execute_tool": 1.4}
"""In yardsticks. A third more than it took when these were written."""


async def yardstick() -> int:
    """Ten messages from one task to another and back."""
    to_it, its = trio.open_memory_channel[int](0)
    to_us, ours = trio.open_memory_channel[int](0)

    async def other() -> None:
        async for number in its:
            await to_us.send(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await trio.testing.wait_all_tasks_blocked()
        with efforts() as steps:
            for number in range(10):
                await to_it.send(number)
                await ours.receive()
        nursery.cancel_scope.cancel()
    return steps.count


def answered(peer: Peer, request_id: int) -> None:
    peer.answer(request_id, {"content": []})


def asked(client: Client, name: str) -> Exchange:
    if name == "execute_tool":
        return client.tool(name, server="x", tool="dig", args={})
    return client.request(name)


async def test_a_request_takes_no_more_than_it_did(autojump_clock: MockClock) -> None:
    config = Config(servers=(Server("x", command="program", era="handshake"),))
    took: dict[str, list[float]] = {name: [] for name in MOST}
    with Peers(on_call=answered).in_place():
        async with open_world(config) as world:
            client = await world.joined()
            await client.call("execute_tool", server="x", tool="dig")
            for _ in range(ROUNDS):
                whole = await yardstick()
                for name, found in took.items():
                    await trio.testing.wait_all_tasks_blocked()
                    with efforts() as steps:
                        answer = await asked(client, name).answer()
                    assert "error" not in answer, answer
                    found.append(steps.count / whole)
    least = {name: min(found) for name, found in took.items()}
    assert {name: share for name, share in least.items() if share > MOST[name]} == {}, least
