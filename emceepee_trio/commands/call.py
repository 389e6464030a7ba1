"""``emceepee call``: one tool call from the shell."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .. import logs
from ..config import Config
from .common import Usage, add_config_options, add_log_options, read_config

HELP = "call one tool and print its result"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER")
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument("args", nargs="?", default="{}", metavar="JSON", help="its arguments")
    add_config_options(parser)
    add_log_options(parser, style="text")


def run(options: argparse.Namespace) -> int:
    try:
        arguments = json.loads(options.args)
    except ValueError as error:
        raise Usage(f"JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise Usage("JSON: expected an object with the tool's arguments")
    logs.configure(options.log_format, options.log_level)
    config = read_config(options)
    import trio

    result = trio.run(_call, config, options.server, options.tool, arguments)
    print(json.dumps(result, indent=2, ensure_ascii=False))
    return 1 if result.get("isError") else 0


async def _call(config: Config, server: str, tool: str, arguments: dict[str, Any]) -> Any:
    """As a client of a session of its own would, without the context blocks."""
    import attrs

    from ..config.bounds import MAX_EXECUTE_TIMEOUT_MS
    from ..errors import ToolError
    from ..session.manager import open_sessions
    from ..tools.registry import TOOLS, Request
    from ..tools.response import error_reply

    # Nobody could fetch the result of a task later, so the call is waited for.
    asked = {
        "server": server,
        "tool": tool,
        "args": arguments,
        "timeout_ms": MAX_EXECUTE_TIMEOUT_MS,
    }
    # Others need not be started for this.
    config = attrs.evolve(config, servers=tuple(s for s in config.servers if s.name == server))
    async with open_sessions(config) as manager:
        session = await manager.ensure("call", "local")
        try:
            reply = await TOOLS.get("execute_tool").call(Request(session, manager), asked)
        except ToolError as error:
            reply = error_reply(error)
        return reply.result
