"""However many ask at once for what does not come: only so many wait, and then nothing is left.

A server in memory that is connected and never answers; clients that ask for everything, in floods,
in batches, and leave. The clock stands until all have asked.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_client import BATCHING, Client, Exchange, request
from emceepee_trio.config import Health, Limits, Server
from emceepee_trio.config.bounds import DAY
from fuzzed import ASKING, open_clients
from lies import SOON
from memory_peers import scripted
from play import RESULTS

LIMITS = Limits(calls=10, tasks=5, session_idle_ms=1_800_000)
SELDOM = Health(interval_ms=DAY)
EACH = 4
"""Tasks, at most, of one that waits."""

How: TypeAlias = Literal["stays", "leaves", "cancels", "in a batch"]


@attrs.frozen
class Wave:
    tool: str
    count: int
    how: How


SILENT = sorted({tool for tool, _ in ASKING.values()} - {"get_server_status"})
ARGUMENTS = dict(ASKING.values())
waves = st.builds(
    Wave,
    st.sampled_from(SILENT),
    st.sampled_from([1, 30, 100]),
    st.sampled_from(["stays", "leaves", "cancels", "in a batch"]),
)


async def send(client: Client, wave: Wave) -> list[Exchange]:
    arguments = {**ARGUMENTS[wave.tool], "server": "bad"}
    if wave.tool == "execute_tool":
        arguments["timeout_ms"] = 60_000
    params = {"name": wave.tool, "arguments": arguments}
    if wave.how == "in a batch":
        batch = [request(next(client.ids), "tools/call", **params) for _ in range(wave.count)]
        opened = [client.post(batch)]
    else:
        opened = [client.request("tools/call", **params) for _ in range(wave.count)]
    await wait_all_tasks_blocked()
    if wave.how == "cancels":
        for request_id in range(next(client.ids)):
            client.cancel(request_id)
    elif wave.how != "stays":
        for exchange in opened:
            exchange.drop()
    await wait_all_tasks_blocked()
    return opened


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


@given(st.lists(waves, min_size=1, max_size=4))
def test_a_crowd_that_nobody_answers(crowd: list[Wave]) -> None:
    clock = MockClock()
    silent = {method: list[bytes]() for method in RESULTS if method not in HELLO}

    async def scenario() -> None:
        with scripted() as play:
            good = Server("good", command="/x")
            opened_clients = open_clients(good, LIMITS, 10**9, health=SELDOM, version=BATCHING)
            async with opened_clients as world:
                assert await world.add("bad", command="/bad", restart=SOON)
                await wait_all_tasks_blocked()
                play.instead.update(silent)
                before, opened = tasks(), list[Exchange]()
                for wave in crowd:
                    opened += await send(world.client, wave)
                    # Each request that is open is one of ours, and one of its connection.
                    still = sum(not each.is_served for each in opened)
                    assert tasks() - before - still <= EACH * LIMITS.calls
                    await world.undisturbed(world.neighbour)
                clock.autojump_threshold = 0
                await trio.sleep(60)
                for each in opened:
                    each.drop()
                await trio.sleep(LIMITS.execute_timeout_ms / 1000 + LIMITS.task_ttl_ms / 1000)
                clock.autojump_threshold = float("inf")
                await wait_all_tasks_blocked()
                await world.undisturbed()
                await wait_all_tasks_blocked()
                assert tasks() <= before

    trio.run(scenario, clock=clock)


HELLO = {"initialize", "server/discover", "ping"}
