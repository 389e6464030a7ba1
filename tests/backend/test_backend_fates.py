"""A try that ends in the very tick in which its backend is told to leave, in many orders."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.private import Private
from emceepee_trio.backend.shared import Shared
from emceepee_trio.config import Config, Server
from emceepee_trio.errors import ToolError
from emceepee_trio.model.states import BackendState
from memory_peers import Peer, Peers
from parts import at_the_moment, in_many_orders
from recording import Recorder

TRIES: dict[str, Callable[[Peer], None]] = {
    "works": lambda peer: peer.greet(kindly=True),
    "is refused": lambda peer: peer.greet(kindly=False),
    "breaks off": lambda peer: peer.end(),
}


@pytest.mark.parametrize("entry", [{"command": "x"}, {"url": "http://x/"}], ids=["child", "url"])
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("how", TRIES)
def test_leaving_and_a_try_that(how: str, once: bool, entry: dict[str, str]) -> None:
    """It ends, whoever was first; who waits for it is told what has become of the try."""

    async def race(order: int) -> str:
        peers, host, got = Peers(mood="waits"), Recorder(), []
        server = Server("it", era="handshake", **entry)  # type: ignore[arg-type]  # all are strings
        with peers.in_place():
            backend = Private(
                server, host, Config(), Shared(), "s", time.time, restricted=False, once=once
            )

            async def call() -> None:
                try:
                    await backend.connection()
                    got.append("connected")
                except ToolError as error:
                    got.append(error.code)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(backend.run)
                nursery.start_soon(call)
                await wait_all_tasks_blocked()
                (peer,) = peers.all
                early, later = (0, order % 13) if order % 2 else (order % 5, 0)
                nursery.start_soon(at_the_moment, lambda: TRIES[how](peer), early)
                nursery.start_soon(at_the_moment, lambda: backend.leave("removed", 0), later)
        assert backend.ended.is_set()
        assert backend.state is BackendState.DISCONNECTED
        assert peers.open() == []
        (outcome,) = got
        connected = "server_connected" in host.story
        assert connected or outcome != "connected"  # or it was left again when the caller looked
        assert connected == ("server_disconnected" in host.story)
        ends = [told for told in host.story if told in {"process_stopped", "process_crashed"}]
        assert host.story.count("process_started") == len(ends)
        return outcome

    found = {*in_many_orders(race)}
    tried = "connected" if how == "works" else "TOOL_ERR_CONNECT_FAILED"
    assert found == {tried, "TOOL_ERR_SERVER_DISCONNECTED"}
