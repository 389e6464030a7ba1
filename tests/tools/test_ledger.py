"""How much a client was told of each server."""

from __future__ import annotations

import math

from emceepee_client import Emceepee, Open
from fake_backends import demo, raw


async def told(emceepee: Emceepee, server: str) -> tuple[int, int]:
    said = (await emceepee.says("get_server_status", server=server))["told"]
    assert said.keys() == {"definitions_bytes", "results_bytes"}
    return said["definitions_bytes"], said["results_bytes"]


async def test_definitions_and_results_are_counted_for_each_server(
    connect_as_either: Open,
) -> None:
    async with connect_as_either({"raw": raw(), "demo": demo()}) as emceepee:
        assert await told(emceepee, "raw") == await told(emceepee, "demo") == (0, 0)
        listed = await emceepee.call("list_tools", server="demo")
        defined, _ = await told(emceepee, "demo")
        assert math.isclose(defined, len(listed.text), rel_tol=0.1)
        await emceepee.call("list_tools", server="demo", tool="^echo$")
        await emceepee.call("codemode_search", query="echo", server="demo")
        await emceepee.call("list_resources", server="demo")
        again, results = await told(emceepee, "demo")
        assert defined < again < 2 * defined
        assert results == 0
        assert await told(emceepee, "raw") == (0, 0)

        await emceepee.execute("raw", "echo", {"text": "x" * 1000})
        _, once = await told(emceepee, "raw")
        assert 1000 <= once < 1500
        task = await emceepee.start_task("raw", "echo", {"text": "x" * 1000})
        for number in (2, 3):
            await emceepee.call("get_task_result", task_id=task)
            assert await told(emceepee, "raw") == (0, number * once)
        assert await told(emceepee, "demo") == (again, 0)
