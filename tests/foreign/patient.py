"""A call longer than its client waits, without an option set: python patient.py URL SECONDS

The client is that of fastmcp, in an environment of its own.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from importlib import import_module
from typing import Any

Client = import_module("fastmcp").Client
"""Nothing that the tests themselves could import."""


async def main(url: str, seconds: int) -> None:
    async with Client(url) as client:

        async def call(name: str, **arguments: Any) -> str:
            result = await client.call_tool(name, arguments, raise_on_error=False)
            return "\n".join(block.text for block in result.content)

        slow = {"seconds": seconds, "steps": 9}
        said = [await call("execute_tool", server="demo", tool="slow", args=slow)]
        found = re.search(r'"task_id": ?"([^"]+)"', said[0])
        assert found is not None, said[0]
        while not said[-1].startswith("done"):
            said.append(await call("get_task_result", task_id=found[1]))
    json.dump({"said": said}, sys.stdout)


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
