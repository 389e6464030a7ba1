"""Events and facts: each class, with what its source says of it and of its fields."""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import attrs

from emceepee_trio.model import events, facts
from emceepee_trio.model.wire import camel, snake

from .words import coded, heading, paragraphs, wrapped

NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def events_rst() -> str:
    kinds = get_args(events.Happening)
    return "\n".join(line for cls in kinds for line in _event(cls))


def facts_rst() -> str:
    kinds = [
        cls
        for cls in vars(facts).values()
        if isinstance(cls, type) and issubclass(cls, facts.Fact) and cls is not facts.Fact
    ]
    return "\n".join(line for cls in kinds for line in _fact(cls))


def _event(cls: type[Any]) -> Iterator[str]:
    name = snake(cls.__name__)
    yield from heading(f"``{name}``", "-", f"event-{name}")
    yield from _told(cls, events, camel)


def _fact(cls: type[Any]) -> Iterator[str]:
    yield from heading(f"``{cls.__name__}``", "-", f"fact-{cls.__name__}")
    yield from _told(cls, facts, str)


def _told(cls: type[Any], module: ModuleType, spelled: Any) -> Iterator[str]:
    said, of_fields = comments(module)[cls.__name__]
    for each in paragraphs(said):
        yield from (wrapped(coded(each)), "")
    hints = get_type_hints(cls)
    for a in attrs.fields(cls):
        if a.inherited:
            continue
        meaning = " ".join(of_fields.get(a.name, "").split())
        is_optional = "" if a.default is attrs.NOTHING else ", not always there"
        line = f"* ``{spelled(a.name)}`` ({kind(hints[a.name])}{is_optional})"
        yield wrapped(line + (f": {coded(meaning)}" if meaning else ""), "  ")
    yield ""


def comments(module: ModuleType) -> Mapping[str, tuple[str, Mapping[str, str]]]:
    """What the source says of each class, and behind each of its fields."""
    found = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ClassDef):
            fields = {}
            for field, behind in zip(node.body, node.body[1:], strict=False):
                match field, behind:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(said))),
                    ):
                        fields[name] = said
            found[node.name] = ast.get_docstring(node) or "", fields
    return found


def kind(hint: Any) -> str:
    """A type in words."""
    if hint is Any:
        return "anything"
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return " or ".join(f"``{member.value}``" for member in hint)
    if isinstance(hint, type) and get_origin(hint) is None:
        return NAMES.get(hint, "object")
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is not None and getattr(origin, "__name__", "") == "Literal":
        return " or ".join(f"``{value}``" for value in arguments)
    if getattr(origin, "__name__", "") in ("Sequence", "tuple", "list"):
        return f"list of {kind(arguments[0])}"
    if getattr(origin, "__name__", "") in ("Mapping", "dict"):
        return "object"
    return " or ".join(kind(each) for each in arguments if each is not type(None))
