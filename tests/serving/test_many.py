"""A thousand sessions with nothing to do, and one that has."""

from __future__ import annotations

import json

from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import Client
from asgi_world import listening, open_world
from deliveries_model import happen, told
from effort import efforts
from emceepee_trio.config import Config, Limits
from emceepee_trio.config.bounds import UNUSED_SESSION_MS

MANY = 1000


async def steps(client: Client) -> int:
    """Those of a request; the least, as the order of tasks is drawn anew in each tick."""
    counts = []
    for _ in range(5):
        await wait_all_tasks_blocked()
        with efforts() as counted:
            await client.call("list_servers")
        counts.append(counted.count)
    return min(counts)


async def test_a_thousand_idle_sessions_come_and_go_and_nobody_else_notices(
    autojump_clock: MockClock,
) -> None:
    async with open_world(Config(limits=Limits(sessions=MANY + 1))) as world:
        client = await world.joined()
        stream = await listening(client)
        waiting = client.tool("await_activity", timeout_ms=900_000)
        await waiting.until(lambda: waiting.primed)
        alone = await steps(client)
        others = [await world.joined() for _ in range(MANY)]
        assert await steps(client) <= 1.05 * alone + 300  # a few ticks, more or less
        assert len(world.manager.sessions()) == MANY + 1
        assert client.own.session.presence.waiters == 1
        happen(client, 1)
        assert told([await waiting.answer()]) == [1]
        await wait_all_tasks_blocked()
        assert not any(other.own.session.events.has_pending for other in others)
        # Nor do they, when something happens in one of them.
        happen(others[0], 2)
        listed = await client.tool("list_servers").answer()
        assert json.loads(listed["result"]["content"][0]["text"]) == {"servers": []}
        assert len(listed["result"]["content"]) == 1
        autojump_clock.jump(UNUSED_SESSION_MS / 1000)
        await wait_all_tasks_blocked()
        assert [s.id for s in world.manager.sessions()] == [client.session]
        assert (await others[0].request("ping").error())[0] == 404
        assert len((await client.tool("list_servers").answer())["result"]["content"]) == 1
        assert stream.messages == []
        assert not stream.is_complete
