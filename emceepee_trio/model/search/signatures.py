"""A tool on one line, as its reader calls it; and as Python, as a script does."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..json.weight import cut, one_line

LONGEST_NAME = 200
"""Characters of a name that are shown."""
SAID = 60
"""Characters of what is said of a tool on its line."""
MOST_PARAMETERS = 12
"""Parameters of a tool on its line, those that are required first."""
LOOKED_AT = 1000
"""Parameters of a tool among which those are looked for."""
DEEPEST = 3
"""Lists within lists whose items are told."""
CHOICES = 30
"""Characters of values of which one is to be chosen; if they have more, their type is told."""

_SHORT = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "obj"}
_PYTHON = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict",
    "null": "None",
}

Schema = Mapping[str, Any]


def arguments_of(tool: Schema, key: str = "inputSchema") -> Iterator[tuple[str, Any, bool]]:
    """Name, schema and whether it is required, of each; the required ones first."""
    schema = tool.get(key)
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(found, Mapping):
        return
    required = schema.get("required")
    named = required[:LOOKED_AT] if isinstance(required, list) else ()
    needed = {name for name in named if isinstance(name, str)}
    for is_needed in (True, False):
        for name, said in islice(found.items(), LOOKED_AT):
            if (name in needed) is is_needed:
                yield name, said, is_needed


def bare(tool: Schema) -> str:
    """Whether it takes anything: ``(…)`` or ``()``."""
    return "(…)" if next(arguments_of(tool), None) is not None else "()"


def typed(tool: Schema, *, optional: bool = True) -> str:
    """``(message: str, files?: str[])``; what is left out is said as ``…``."""
    found: list[str] = []
    for name, schema, required in arguments_of(tool):
        if len(found) == MOST_PARAMETERS or not (required or optional):
            found.append("…")
            break
        mark = "" if required else "?"
        found.append(f"{cut(name, LONGEST_NAME)}{mark}: {_short(schema, DEEPEST)}")
    return f"({', '.join(found)})"


def purpose(entry: Schema, length: int = SAID) -> str:
    """What is said of it, on one line; of that the first sentence if there is more."""
    for key in ("description", "title"):
        said = entry.get(key)
        if isinstance(said, str) and (line := one_line(said, 1000)):
            first = re.split(r"(?<=\w)[.。](?:\s|(?<=。)|$)", line, maxsplit=1)[0]
            return cut(first, length)
    return ""


def _short(schema: Any, depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if (choices := _choices(schema)) is not None and len(choices) <= CHOICES:
        return choices
    kind = _kind(schema)
    if kind == "array":
        return f"{_short(schema.get('items'), depth - 1)}[]" if depth else "any[]"
    return _SHORT.get(kind, "any")


def _kind(schema: Schema) -> str:
    """The one type it has beside null, as far as it says so at once."""
    kind = schema.get("type")
    kinds = kind[:10] if isinstance(kind, list) else [kind]
    if kind is None:
        for key in ("anyOf", "oneOf"):
            arms = schema.get(key)
            if isinstance(arms, list):
                kinds = [arm.get("type") for arm in arms[:10] if isinstance(arm, Mapping)]
    found = [each for each in kinds if isinstance(each, str) and each != "null"]
    return found[0] if len(found) == 1 else ""


def _choices(schema: Schema) -> str | None:
    given = schema.get("enum")
    if not isinstance(given, list) or not 0 < len(given) <= 10:
        return None
    if not all(isinstance(each, str | int) and len(str(each)) <= CHOICES for each in given):
        return None
    return "|".join(str(each) for each in given)


def stub(server: str, tool: Schema) -> str:
    """``servers.git.commit(message: str, files: list[str] | None = None)``.

    What has no name in Python is called by ``call_tool``, and the names of its arguments are there.
    """
    name = str(tool.get("name"))
    found = list(arguments_of(tool))[: 4 * MOST_PARAMETERS]
    if all(map(_is_name, (server, name, *(argument for argument, _, _ in found)))):
        said = ", ".join(
            f"{argument}: {_python(schema, DEEPEST)}"
            if required
            else f"{argument}: {_or_none(_python(schema, DEEPEST))} = None"
            for argument, schema, required in found
        )
        return f"servers.{server}.{name}({said})"
    inner = ", ".join(
        f"{_quoted(argument)}: {_python(schema, DEEPEST)}" + ("" if required else " | absent")
        for argument, schema, required in found
    )
    return f"call_tool({_quoted(server)}, {_quoted(name)}, {{{inner}}})"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text) and not text.startswith("_")


def _quoted(text: str) -> str:
    return repr(cut(text, LONGEST_NAME)).replace("'", '"') if "'" not in text else repr(text)


def _or_none(said: str) -> str:
    return said if said in ("Any", "None") else f"{said} | None"


def _python(schema: Any, depth: int) -> str:
    if not isinstance(schema, Mapping):
        return "Any"
    if (choices := _choices(schema)) is not None and len(choices) <= 4 * CHOICES:
        return f"Literal[{', '.join(repr(each) for each in schema['enum'])}]"
    kind = _kind(schema)
    if kind == "array":
        return f"list[{_python(schema.get('items'), depth - 1)}]" if depth else "list"
    return _PYTHON.get(kind, "Any")
