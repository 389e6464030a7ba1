"""A client of the SDK that does as it is told, line by line: python told_client.py COMMAND ARG…

Each line is a tool of ours and its arguments, as a JSON array; each answer is a line, too. The
command is that of an entry that `emceepee connect` has written.
"""

from __future__ import annotations

import json
import os
import sys

import trio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import Implementation


async def main(*command: str) -> None:
    name, *args = command
    program = StdioServerParameters(command=name, args=args, env=dict(os.environ))
    me = Implementation(name="told", version="1")
    async with Client(stdio_client(program), client_info=me) as client:
        async for line in trio.wrap_file(sys.stdin):
            tool, arguments = json.loads(line)
            result = await client.call_tool(tool, arguments)
            sys.stdout.write(json.dumps(result.model_dump(mode="json", by_alias=True)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
