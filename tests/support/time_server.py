"""What ``uvx mcp-server-time`` is in the tutorial: a stand-in, for tests without a network."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

TOOLS = {
    "get_current_time": ("Get current time in a specific timezone", ("timezone",)),
    "convert_time": (
        "Convert time between timezones",
        ("source_timezone", "time", "target_timezone"),
    ),
}


def shown(name: str, moment: datetime) -> dict[str, Any]:
    return {
        "timezone": name,
        "datetime": moment.isoformat(timespec="seconds"),
        "day_of_week": moment.strftime("%A"),
        "is_dst": bool(moment.dst()),
    }


def convert(source_timezone: str, time: str, target_timezone: str) -> dict[str, Any]:
    here = datetime.now(ZoneInfo(source_timezone))
    source = datetime.combine(here.date(), datetime.strptime(time, "%H:%M").time(), here.tzinfo)  # noqa: DTZ007 - only the time is taken
    target = source.astimezone(ZoneInfo(target_timezone))
    hours = (target.utcoffset() or here - here) - (source.utcoffset() or here - here)
    return {
        "source": shown(source_timezone, source),
        "target": shown(target_timezone, target),
        "time_difference": f"{hours.total_seconds() / 3600:+.1f}h",
    }


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mcp-time", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [_tool(name, *of) for name, of in TOOLS.items()]}
    if method == "tools/call":
        given = params["arguments"]
        if params["name"] == "convert_time":
            said = convert(**given)
        else:
            said = shown(given["timezone"], datetime.now(ZoneInfo(given["timezone"])))
        return {"content": [{"type": "text", "text": json.dumps(said, indent=2)}]}
    return None


def _tool(name: str, description: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": description, "inputSchema": schema}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = answer(asked["method"], asked.get("params") or {})
            missing = {"error": {"code": -32601, "message": "Method not found"}}
            said = {"result": result} if result is not None else missing
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
