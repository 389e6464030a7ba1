"""What a client is told of a server whose program takes long to start."""

from __future__ import annotations

import re

from emceepee_client import Emceepee, Json, Open
from installer import installing

SLOW = installing("print", 600, connect_timeout_ms=1000)
SAID = "still starting, for 0 s now; it said: Downloading the internet (1.0 TiB)"


async def still_starting(client: Emceepee, name: str) -> Json:
    """Its entry, once it takes long."""
    while True:
        entry: Json = (await client.status(name))["server"]
        if "starting" in entry:
            return entry


def timeless(text: str) -> str:
    """Without how long it took."""
    return re.sub(r"for \d+ s now", "for 0 s now", text)


async def test_a_server_that_starts_says_so_and_what_it_has_written(connect: Open) -> None:
    async with connect({"slow": SLOW}) as client:
        assert timeless((await still_starting(client, "slow"))["starting"]) == SAID
        (listed,) = (await client.says("list_servers"))["servers"]
        assert listed["status"] == "connecting"
        assert timeless(listed["starting"]) == SAID
        assert "last_error" not in listed


async def test_whoever_waits_for_it_is_told(connect: Open) -> None:
    limits = {"list_patience_ms": 0, "execute_timeout_ms": 100}
    async with connect({"slow": SLOW}, limits=limits) as client:
        await still_starting(client, "slow")
        (error,) = (await client.says("list_tools"))["errors"]
        assert timeless(error["error"]) == f"connecting: no answer yet after 0 ms; {SAID}"
        read = await client.fails("read_resource", server="slow", uri="x://y")
        assert read["code"] == "TOOL_ERR_TIMEOUT"
        assert f"it is {SAID}" in timeless(read["message"])
        call = await client.execute("slow", "echo", timeout_ms=0)
        assert f"Server 'slow' is {SAID}." in timeless(call.texts[0])
        later = await client.fails("get_task_result", task_id=call.task_id, timeout_ms=0)
        assert f"Server 'slow' is {SAID}" in timeless(later["message"])


async def test_who_waits_for_its_turn_says_that(connect: Open) -> None:
    async with connect({"a": SLOW, "b": SLOW}, limits={"starting": 1}) as client:
        entries = [await still_starting(client, name) for name in ("a", "b")]
        (said,) = {timeless(entry["starting"]) for entry in entries} - {SAID}
        assert said == "still starting: waits for its turn, 1 at once may do so (limits.starting)"


async def test_who_has_started_says_nothing_of_it(connect: Open) -> None:
    entry = installing("print", 1.5, connect_timeout_ms=1000)
    async with connect({"slow": entry}) as client:
        await client.connected("slow")
        assert "starting" not in (await client.status("slow"))["server"]
