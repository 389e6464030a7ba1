"""What crosses between a script and us: names, values, and what is said of errors.

Pure, and used on both sides. Knows neither the sandbox nor MCP.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "list_servers": (),
    "search": ("query",),
    "list_tools": ("server", "tool", "query"),
    "call_tool": ("server", "tool", "args"),
    "list_resources": ("server",),
    "list_resource_templates": ("server",),
    "read_resource": ("server", "uri"),
    "list_prompts": ("server",),
    "get_prompt": ("server", "name", "arguments"),
    "read_result": ("id",),
    "sleep": ("seconds",),
    "log": (),
}
"""What a script may call, beside `servers`, and the names of its arguments in their order."""

DEPTH = 100
"""Levels of what crosses; the sandbox itself can nest deeper."""
INTEGER = 10**300
"""Whole numbers from here on are not taken by everybody who reads JSON."""
SHOWN = 200
"""Characters of a line of the script, and of what is only described, that are shown."""


class Unsayable(Exception):
    """A value that cannot cross; says why."""


def plain(value: object, depth: int = 0, *, lenient: bool = False) -> Any:
    """*value* as JSON has it. What it does not have is refused or, if *lenient*, described.

    Raises:
        Unsayable: there is no way to say it.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) and abs(value) < INTEGER:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth >= DEPTH:
        raise Unsayable(f"it is nested deeper than {DEPTH} levels; make it flatter")
    if isinstance(value, Mapping):
        return {
            key if isinstance(key, str) else str(key): plain(item, depth + 1, lenient=lenient)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1, lenient=lenient) for item in value]
    if isinstance(value, set | frozenset):
        return [plain(item, depth + 1, lenient=lenient) for item in _ordered(value)]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    attributes = getattr(value, "attributes", None)
    if isinstance(attributes, Mapping):  # of an instance of a class that the script has made
        return plain(attributes, depth + 1, lenient=lenient)
    said = "so large a number" if isinstance(value, int) else str(value)[:SHOWN]
    if lenient:
        return said
    raise Unsayable(f"{said} is not JSON; convert it first")


def _ordered(values: set[Any] | frozenset[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return list(values)


def line(values: tuple[object, ...]) -> str:
    """As the log has it."""
    return " ".join(value if isinstance(value, str) else _said(value) for value in values)


def _said(value: object) -> str:
    try:
        return json.dumps(plain(value, lenient=True), ensure_ascii=False)
    except (Unsayable, RecursionError):
        return "something that is nested too deeply"


def pointed(
    source: str, number: int, inside: str | None, columns: tuple[int, int | None]
) -> list[str]:
    """A line of the script, and carets below what was run; *columns* count from 1."""
    where = f"  line {number}" + (f", in {inside}" if inside not in (None, "<module>") else "")
    text = source.lstrip()
    indented = len(source) - len(text)
    first, end = columns
    start = max(0, first - 1 - indented)
    text = text[:SHOWN].rstrip()
    if start > len(text):
        return [where, f"    {text}"] if text else [where]
    width = (len(text) if end is None else min(end - 1 - indented, len(text))) - start
    return [where, f"    {text}", "    " + " " * start + "^" * max(1, width)]


def bound(name: str, args: object, kwargs: object) -> dict[str, Any]:
    """The arguments of a function of `FUNCTIONS`, by their names.

    Raises:
        Unsayable: that is no way to call it.
    """
    names = FUNCTIONS[name]
    args = args if isinstance(args, list) else []
    given = dict(kwargs) if isinstance(kwargs, dict) else {}
    if len(args) > len(names):
        takes = ", ".join(names) or "nothing"
        raise Unsayable(f"{name}() takes {takes} by position, and was given {len(args)} values")
    for key, value in zip(names, args, strict=False):
        if key in given:
            raise Unsayable(f"{name}() was given {key} twice")
        given[key] = value
    return given
