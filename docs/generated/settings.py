"""The settings: every key with its type, default, bounds and meaning, from its class."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import attrs

from emceepee_trio.config.limits import Limits
from emceepee_trio.config.policy import AllowedProgram, Policy
from emceepee_trio.config.roots import Folder
from emceepee_trio.config.server import Server
from emceepee_trio.config.settings import (
    Codemode,
    Config,
    Defaults,
    Health,
    Http,
    NativeSettings,
    PageSettings,
    RelaySettings,
    ResultSettings,
    Telemetry,
    Token,
)
from emceepee_trio.config.treatment import (
    Reconnect,
    Retry,
    ServerNative,
    ServerRelay,
    ServerResults,
    ViewRelay,
)
from emceepee_trio.model.json.fields import fields_of
from emceepee_trio.model.json.problems import bounds
from emceepee_trio.model.json.schema import (
    arms,
    is_list,
    is_literal,
    is_mapping,
    is_union,
    item_type,
)

from .words import heading, wrapped

_SECTIONS: tuple[tuple[str, str, type], ...] = (
    ("The file", "", Config),
    ("A server", "servers.", Server),
    ("defaults", "defaults.", Defaults),
    ("restart", "restart.", Retry),
    ("reconnect", "reconnect.", Reconnect),
    ("results of a server", "servers.results.", ServerResults),
    ("native of a server", "servers.native.", ServerNative),
    ("relay of a server", "servers.relay.", ServerRelay),
    ("limits", "limits.", Limits),
    ("results", "results.", ResultSettings),
    ("native", "native.", NativeSettings),
    ("relay", "relay.", RelaySettings),
    ("An entry of relay.views", "relay.views.", ViewRelay),
    ("page", "page.", PageSettings),
    ("telemetry", "telemetry.", Telemetry),
    ("health", "health.", Health),
    ("codemode", "codemode.", Codemode),
    ("http", "http.", Http),
    ("An entry of tokens", "http.tokens.", Token),
    ("policy", "policy.", Policy),
    ("An entry of roots", "roots.", Folder),
    ("An entry of spawn_allowlist", "policy.spawn_allowlist.", AllowedProgram),
)
"""Titles, what stands before the keys there, and what has them."""

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def settings_rst() -> str:
    """One section for each class, one entry for each key."""
    return "\n".join(line for section in _SECTIONS for line in _section(*section))


def _section(title: str, prefix: str, cls: type) -> Iterator[str]:
    yield from heading(title, "-")
    for a in fields_of(cls):
        meaning = a.metadata.get("doc") or f"See `{a.name}`_."
        limits = bounds(a.metadata.get("low"), a.metadata.get("high"))
        facts = ", ".join(filter(None, (_type(a.type), limits, _default(a))))
        yield from (f".. confval:: {prefix}{a.name}", "")
        yield from (f"   {facts}", "", f"   {wrapped(meaning, '   ')}", "")


def _default(a: attrs.Attribute[Any]) -> str:
    if a.default is attrs.NOTHING:
        return "required"
    if a.default is None or isinstance(a.default, attrs.Factory):  # type: ignore[arg-type]  # to mypy a function, it is a class
        return ""
    return f"default ``{json.dumps(a.default)}``"


def _type(cls: Any) -> str:
    if is_union(cls):
        return " or ".join(map(_type, arms(cls)))
    if is_literal(cls):
        return " or ".join(f"``{choice}``" for choice in get_args(cls))
    if is_list(cls):
        return f"list of {_type(item_type(cls))}"
    if is_mapping(cls):
        return f"object of {_type(item_type(cls))}"
    return _NAMES.get(cls, "object")
