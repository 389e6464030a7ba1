"""Of everything there is, a debugger or a failing test can show what it is without drowning."""

from __future__ import annotations

import gc
from typing import Any

import attrs
import trio.testing

from asgi_world import open_world
from connected import server
from emceepee_trio.config import Config
from memory_peers import Peers

# Far less than all that hangs together: that is hundreds of megabytes.
SHORT = 200_000


async def test_nothing_shows_all_that_it_hangs_together_with() -> None:
    peers = Peers()
    with peers.in_place():
        async with open_world(Config(servers=(server(),))) as mcp:
            call: dict[str, Any] = {"server": "x", "tool": "t", "timeout_ms": 600_000}
            mcp.client("ada").modern_tool("execute_tool", **call)
            await trio.testing.wait_all_tasks_blocked()
            assert [peer.began for peer in peers.all] == [["t"]]
            gc.collect()  # what other tests have left
            kinds = {type(each): each for each in gc.get_objects() if _is_ours(type(each))}
            assert len(kinds) > 50
            long = [kind for kind, each in kinds.items() if len(repr(each)) > SHORT]
            assert long == []


def _is_ours(kind: type) -> bool:
    return attrs.has(kind) and kind.__module__.startswith("emceepee_trio")
