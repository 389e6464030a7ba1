"""``emceepee call``: one tool call from the shell."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from .. import logs
from ..config import LOCAL, Config
from ..config.bounds import MAX_EXECUTE_TIMEOUT_MS
from .common import read_config
from .options import Usage, add_config_options, add_log_options, add_state_option
from .output import complain, say
from .remote import Client, Daemon, NoAnswer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER")
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument("args", nargs="?", default="{}", metavar="JSON", help="its arguments")
    add_config_options(parser)
    parser.add_argument(
        "--url", metavar="U", help="ask the daemon at http://HOST:PORT or unix:PATH instead"
    )
    add_state_option(parser)
    add_log_options(parser, style="text")


def run(options: argparse.Namespace) -> int:
    try:
        arguments = json.loads(options.args)
    except ValueError as error:
        raise Usage(f"JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise Usage("JSON: expected an object with the tool's arguments")
    logs.configure(options.log_format, options.log_level, alone=True)
    # Nobody could fetch the result of a task later, so the call is waited for.
    asked = {
        "server": options.server,
        "tool": options.tool,
        "args": arguments,
        "timeout_ms": MAX_EXECUTE_TIMEOUT_MS,
    }
    if options.url is not None:
        if options.config is not None or options.demo:
            raise Usage("--url: the daemon has servers of its own; leave --config and --demo out")
        try:
            result = _ask(Daemon.find(options.url, options.state_dir), asked)
        except NoAnswer as error:
            complain(f"emceepee call: {error}")
            return 1
    else:
        config = read_config(options)
        import trio

        result = trio.run(_call, config, asked)
    try:
        said = json.dumps(result, indent=2, ensure_ascii=False)
    except RecursionError:
        complain("emceepee call: the result is nested too deeply")
        return 1
    say(said)
    return 1 if result.get("isError") else 0


def _ask(daemon: Daemon, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a running daemon answers, without the context blocks."""
    with Client.connected(daemon, "emceepee call") as client:
        result = client.call("execute_tool", asked)
    content = result.get("content")
    for key in ("pending_client_action", "events_since_last_response"):
        if isinstance(content, list) and content and _is_block(content[-1], key):
            content = content[:-1]
    return result if content is result.get("content") else {**result, "content": content}


def _is_block(block: Any, key: str) -> bool:
    try:
        said = json.loads(block["text"])
    except (TypeError, KeyError, ValueError, RecursionError):
        return False
    return isinstance(said, dict) and key in said


async def _call(config: Config, asked: Mapping[str, Any]) -> Any:
    """As a client of a session of its own would, without the context blocks."""
    import attrs

    from ..errors import ToolError
    from ..session.manager import open_sessions
    from ..tools.registry import TOOLS, Request
    from ..tools.response import error_reply

    # Others need not be started for this.
    mine = tuple(server for server in config.servers if server.name == asked["server"])
    async with open_sessions(attrs.evolve(config, servers=mine)) as manager:
        session = await manager.ensure("call", LOCAL)
        try:
            reply = await TOOLS.get("execute_tool").call(Request(session, manager), asked)
        except ToolError as error:
            reply = error_reply(error)
        return reply.result
