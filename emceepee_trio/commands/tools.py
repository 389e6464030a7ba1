"""``emceepee tools``: what tools there are, and what they take."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from .common import shell
from .common.output import complain, say
from .common.shell import Asked, Unavailable, in_words, tools_of
from .common.terminal import show_table, working

WIDE = 100
"""Characters of a description in a table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="of this one, with arguments")
    parser.add_argument("--json", action="store_true", help="whole, with schemas, as JSON")
    shell.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    server: str | None = options.server
    which = {"detail": "full" if options.json or server else "summary"}
    if server is not None:
        which["server"] = server

    async def ask(asked: Asked) -> tuple[dict[str, list[Any]], list[Any]]:
        await asked.settled(server)
        return await tools_of(asked, **which)

    try:
        with working("asking for tools"):
            found, errors = shell.in_session(options, ask, server)
    except Unavailable as why:
        return shell.refused(options, why)
    if options.json:
        tools = [{"server": name, **tool} for name, each in found.items() for tool in each]
        say(json.dumps(tools, indent=2, ensure_ascii=False))
    else:
        takes = {"server": "server", "tool": "tool"} if server is None else {"tool": "tool"}
        rows = [
            [name, _call(tool) if server else tool.get("name", ""), _first(tool)][-len(takes) - 1 :]
            for name, each in found.items()
            for tool in each
        ]
        if rows:
            show_table((*takes, "description"), rows)
        elif not errors:
            say("no tools")
            if not found:
                shell.tell_where_servers_are(options)
    for name, error in errors:
        complain(f"emceepee tools: {name}: {in_words({'message': error})}")
    return 1 if errors else 0


def _call(tool: Mapping[str, Any]) -> str:
    """Its name and its arguments, those in brackets that may be left out."""
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {}
    required = schema.get("required")
    known = schema.get("properties")
    names = [
        name if isinstance(required, list) and name in required else f"[{name}]"
        for name in (known if isinstance(known, dict) else ())
    ]
    return " ".join([str(tool.get("name", "")), *names])


def _first(tool: Mapping[str, Any]) -> str:
    """The first sentence about it."""
    text = str(tool.get("description") or tool.get("title") or "").strip()
    sentence = text.split("\n")[0].split(". ")[0]
    return sentence if len(sentence) <= WIDE else sentence[:WIDE] + "…"
