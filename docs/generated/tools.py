"""The tools: their arguments from their classes, their results as somebody has seen them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from emceepee_trio.config import Server
from emceepee_trio.model.json.fields import fields_of
from emceepee_trio.model.json.schema import arms, is_union, json_schema
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Tool

from .words import escaped, heading, paragraphs, wrapped

RESULTS = Path(__file__).parent / "results.json"
"""What each tool has answered, by its name; ``tests/docs/test_results.py`` tells if it would
answer something of another shape now."""


AS_IT_IS = "What the server answers, as it is; for example:"
SAID = {
    "execute_tool": "What the server answers, as it is. If the call has become a task:",
    **dict.fromkeys(("call_read", "get_prompt", "get_task_result", "read_resource"), AS_IT_IS),
}
"""Instead of what is said above the answers of the others."""


def tools_rst() -> str:
    """One section for each tool, in the order in which clients see them."""
    results = json.loads(RESULTS.read_text("utf-8"))
    return "\n".join(line for tool in TOOLBOX.tools for line in _tool(tool, results))


def _tool(tool: Tool, results: Mapping[str, Any]) -> Iterator[str]:
    yield from heading(f"``{tool.name}``", "-", f"tool-{tool.name}")
    for each in paragraphs(tool.description):
        yield from (wrapped(escaped(each)), "")
    schema = tool.schema
    yield from _arguments(schema, _objects(tool.arguments), "")
    yield ""
    if tool.name in results:
        said = json.dumps(results[tool.name], indent=2, ensure_ascii=False)
        above = SAID.get(tool.name, "Answers, for example:")
        yield from (above, "", ".. code-block:: json", "")
        yield from (f"   {line}" for line in said.splitlines())
        yield ""


def _objects(cls: type) -> dict[str, Mapping[str, Any]]:
    """Arguments that the schema shows as objects without a word, to be short, in full.

    What is said of a server by a tool is what is said of it in a file.
    """
    of_servers = {a.name: a.type for a in fields_of(Server)} if cls.__name__ == "AddServer" else {}
    found: dict[str, Mapping[str, Any]] = {}
    for a in fields_of(cls):
        kind = of_servers.get(a.name, a.type)
        for each in arms(kind) if is_union(kind) else (kind,):
            if isinstance(each, type) and attrs.has(each):
                found[a.name] = json_schema(each)
    return found


def _arguments(
    schema: Mapping[str, Any], objects: Mapping[str, Mapping[str, Any]], indent: str
) -> Iterator[str]:
    for name, shape in schema.get("properties", {}).items():
        facts = [kind(shape)]
        if name in schema.get("required", ()):
            facts.append("required")
        elif shape.get("default") is not None:
            facts.append(f"default {json.dumps(shape['default'])}")
        meaning = escaped(" ".join(shape.get("description", "").split()))
        said = f"* ``{name}`` ({escaped(', '.join(facts))})" + (f": {meaning}" if meaning else "")
        yield wrapped(indent + said, f"{indent}  ")
        within = shape.get("items", shape)
        if not within.get("properties"):
            within = objects.get(name, {})
        if within.get("properties"):
            yield ""
            yield from _arguments(within, {}, f"{indent}  ")
            yield ""


def kind(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words: ``integer``, ``array of string``, ``"full" or "off"``."""
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(kind(each) for each in choices))
    if isinstance(schema.get("type"), list):
        return " or ".join(schema["type"])
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {kind(schema['items'])}"
    return str(schema.get("type", "anything"))
