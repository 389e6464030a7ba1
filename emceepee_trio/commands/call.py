"""``emceepee call``: one tool call from the shell."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from ..config.bounds import MAX_EXECUTE_TIMEOUT_MS, MAX_TASK_TTL_MS
from .common import shell
from .common.given import Given
from .common.output import complain, say
from .common.shell import Asked, Unavailable, error_of, in_words, json_of, tools_of
from .common.terminal import Ticker, working
from .under_way.meanwhile import Asking

LOOK_MS = 5000
"""How often we look whether the server asks something."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", metavar="SERVER")
    parser.add_argument("tool", metavar="TOOL")
    parser.add_argument(
        "args",
        nargs="*",
        metavar="ARGUMENT",
        help="JSON, KEY=VALUE, KEY=@FILE for what is in a file, KEY:=JSON; @FILE or - for JSON in "
        "a file or on standard input",
    )
    parser.add_argument(
        "--text", action="store_true", help="print the text of the result alone, not its JSON"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=MAX_EXECUTE_TIMEOUT_MS / 1000,
        metavar="S",
        help="seconds to wait for it, once its server is there; then it is cancelled",
    )
    shell.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    given = Given.of(options.args)

    async def ask(asked: Asked) -> dict[str, Any]:
        await asked.settled(options.server)
        arguments = given.whole
        if given.words:
            schema = await _schema(asked, options.server, options.tool)
            arguments = {**arguments, **given.typed(schema)}
        return await _call(asked, options, arguments, ticker)

    try:
        with working(f"waiting for {options.server}") as ticker:
            result = shell.in_session(options, ask, options.server)
        if (error := error_of(result)) is not None:
            raise Unavailable(_said(error, options))
    except Unavailable as why:
        return shell.refused(options, why)
    failed = bool(result.get("isError"))
    try:
        said = _text(result) if options.text else json.dumps(result, indent=2, ensure_ascii=False)
    except RecursionError:
        complain("emceepee call: the result is nested too deeply")
        return 1
    if options.text and failed:
        complain(f"emceepee call: {said}")
    else:
        say(said)
    return 1 if failed else 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= MAX_EXECUTE_TIMEOUT_MS / 1000:
        raise argparse.ArgumentTypeError(f"expected up to {MAX_EXECUTE_TIMEOUT_MS // 1000} seconds")
    return seconds


async def _schema(asked: Asked, server: str, tool: str) -> Mapping[str, Any]:
    """What the tool takes, as its server says."""
    found, _ = await tools_of(asked, server=server, tool=f"^{re.escape(tool)}$", detail="full")
    for entry in found.get(server, ()):
        if entry.get("name") == tool and isinstance(entry.get("inputSchema"), dict):
            schema: Mapping[str, Any] = entry["inputSchema"]
            return schema
    return {}  # then the call tells what is wrong


async def _call(
    asked: Asked, options: argparse.Namespace, arguments: Mapping[str, Any], ticker: Ticker
) -> dict[str, Any]:
    """Its result, be it that of a task: nobody could fetch that later."""
    end: float = time.monotonic() + options.timeout

    def left_ms() -> int:
        return max(0, min(LOOK_MS, round((end - time.monotonic()) * 1000)))

    result = await asked.call(
        "execute_tool",
        {
            "server": options.server,
            "tool": options.tool,
            "args": arguments,
            "timeout_ms": left_ms(),
            "ttl_ms": MAX_TASK_TTL_MS,
        },
    )
    task = _task_in(result)
    asking = Asking(asked, options.server, options.url, ticker)
    while task is not None:
        refused = None
        try:
            end += await asking.look()  # what a person takes is not the server's time
        except Unavailable as why:
            refused = why
        if not (left := left_ms()) and refused is None:
            refused = Unavailable(f"no answer within {options.timeout:g} s; it is cancelled")
        if refused is not None:
            await asked.call("cancel_task", {"task_id": task})
            raise refused
        result = await asked.call("get_task_result", {"task_id": task, "timeout_ms": left})
        if (error_of(result) or {}).get("code") != "TOOL_ERR_TIMEOUT":
            return result
    return result


def _task_in(result: Mapping[str, Any]) -> str | None:
    """The id of the task that a call has become."""
    content = result.get("content")
    for block in content if isinstance(content, list) else ():
        task = json_of(block).get("proxy_task")
        if isinstance(task, dict) and isinstance(task.get("task_id"), str):
            return str(task["task_id"])
    return None


def _said(error: Mapping[str, Any], options: argparse.Namespace) -> str:
    said = in_words(error)
    if error.get("code") == "TOOL_ERR_NOT_FOUND":
        return f"{said}; `emceepee tools {options.server}` lists what it has"
    details = error.get("details")
    if isinstance(details, dict) and isinstance(details.get("code"), int):
        return f"{said} (code {details['code']})"
    return said


def _text(result: Mapping[str, Any]) -> str:
    """What a person reads: the text in it, or else its data."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [_block(block) for block in blocks if isinstance(block, dict)]
    if not parts and "structuredContent" in result:
        parts = [json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)]
    return "\n".join(parts)


def _block(block: Mapping[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    inner = block.get("resource")
    if isinstance(inner, dict) and isinstance(inner.get("text"), str):
        return str(inner["text"])
    about = inner if isinstance(inner, dict) else block
    known = (block.get("type"), about.get("uri"), about.get("mimeType"))
    return f"[{' '.join(str(each) for each in known if each)}]"
