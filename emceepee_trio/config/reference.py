"""The settings as tables in reStructuredText, for the documentation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import attrs

from ..model.json.fields import fields_of
from ..model.json.problems import bounds
from ..model.json.schema import arms, is_list, is_literal, is_mapping, is_union, item_type
from .policy import AllowedProgram, Policy
from .server import Reconnect, Retry, Server, ServerNative, ServerRelay, ServerResults
from .settings import (
    Codemode,
    Config,
    Defaults,
    Health,
    Http,
    Limits,
    NativeSettings,
    PageSettings,
    RelaySettings,
    ResultSettings,
)

_SECTIONS: tuple[tuple[str, type], ...] = (
    ("The file", Config),
    ("A server", Server),
    ("defaults", Defaults),
    ("restart", Retry),
    ("reconnect", Reconnect),
    ("results of a server", ServerResults),
    ("native of a server", ServerNative),
    ("relay of a server", ServerRelay),
    ("limits", Limits),
    ("results", ResultSettings),
    ("native", NativeSettings),
    ("relay", RelaySettings),
    ("page", PageSettings),
    ("health", Health),
    ("codemode", Codemode),
    ("http", Http),
    ("policy", Policy),
    ("An entry of spawn_allowlist", AllowedProgram),
)

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def reference_rst() -> str:
    """One section for each class, one row for each key."""
    return "\n".join(line for title, cls in _SECTIONS for line in _section(title, cls))


def _section(title: str, cls: type) -> Iterator[str]:
    yield from (title, "-" * len(title), "")
    yield from (".. list-table::", "   :header-rows: 1", "   :widths: auto", "")
    yield from _row("Key", "Type", "Default", "Bounds", "Meaning")
    for a in fields_of(cls):
        meaning = a.metadata.get("doc") or f"See `{a.name}`_."
        limits = bounds(a.metadata.get("low"), a.metadata.get("high"))
        yield from _row(f"``{a.name}``", _type(a.type), _default(a), limits, meaning)
    yield ""


def _row(first: str, *others: str) -> Iterator[str]:
    yield f"   * - {first}"
    yield from (f"     - {other}".rstrip() for other in others)


def _default(a: attrs.Attribute[Any]) -> str:
    if a.default is attrs.NOTHING:
        return "*required*"
    if a.default is None or isinstance(a.default, attrs.Factory):  # type: ignore[arg-type]  # to mypy a function, it is a class
        return ""
    return f"``{json.dumps(a.default)}``"


def _type(cls: Any) -> str:
    if is_union(cls):
        return " or ".join(map(_type, arms(cls)))
    if is_literal(cls):
        return ", ".join(f"``{choice}``" for choice in get_args(cls))
    if is_list(cls):
        return f"list of {_type(item_type(cls))}"
    if is_mapping(cls):
        return f"object of {_type(item_type(cls))}"
    return _NAMES.get(cls, "object")
