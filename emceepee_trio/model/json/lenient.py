"""What a model means by arguments that are nearly right, made into what ``strict`` takes.

Models, and programs in front of them, add keys of their own, write ``5000.0`` or ``"5000"`` for an
integer, null for what they leave out, and a list or an object as a string that holds its JSON.
Nothing is guessed beyond that: what is still wrong is for ``strict`` to refuse, with its path. A
key that nobody knows is left out, and named.

A class may have a static method ``meant()``, which is given the object before its keys are looked
at and returns it in our words. This module knows neither configuration nor tools.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, get_args

import attrs

from ..wire import loads
from .fields import fields_of
from .intake import check_text
from .problems import Problem, did_you_mean, join, show
from .schema import arms, is_list, is_mapping, is_union, item_type

SPELLED = 100_000
"""Values in a list or an object that is spelled as a string; such a string is parsed at once."""

NAMED = 20
"""Unknown keys that are told of one call; the others are only counted."""

_NUMBER = re.compile(r"-?\d{1,40}(\.\d{1,40})?")


def lenient(
    data: object, cls: type, *, aliases: Mapping[str, str] = {}
) -> tuple[object, list[Problem]]:
    """*data* as ``strict`` takes it for a *cls*, and the keys that were left out of it.

    *aliases* are other spellings of field names, in every class on the way.
    """
    reading = _Reading(aliases)
    value = reading.read(data, cls, "")
    if reading.more:
        reading.strangers.append(Problem("", f"and {reading.more} more unknown keys"))
    return value, reading.strangers


@attrs.define(eq=False)
class _Reading:
    aliases: Mapping[str, str]
    strangers: list[Problem] = attrs.field(factory=list, init=False)
    more: int = attrs.field(default=0, init=False)
    """Unknown keys beyond those."""

    def read(self, value: object, cls: Any, path: str, most: int | None = None) -> object:
        """*value*, which stands at *path*; of a list at *most* so many items."""
        value = _parsed(value, cls)
        one = _only(cls)
        if one is None or type(value) is one:
            return value
        if attrs.has(one) and isinstance(value, Mapping):
            return self._object(value, one, path)
        if (
            is_list(one)
            and isinstance(value, list | tuple)
            and (most is None or len(value) <= most)
        ):
            inner = item_type(one)
            return [self.read(item, inner, join(path, i)) for i, item in enumerate(value)]
        if one in (int, float):
            return _number(value, one)
        if one is bool and value in ("true", "false"):
            return value == "true"
        return value

    def _object(self, value: Mapping[str, Any], cls: Any, path: str) -> dict[str, object]:
        fields = takes = _fields(cls)
        if self.aliases:
            takes = {k: fields[name] for k, name in self.aliases.items() if name in fields} | fields
        meant = getattr(cls, "meant", None)
        given = value if meant is None else meant(value)  # no copy of what may be very much
        known = [key for key in takes if key in given]  # of very many keys they are few
        if len(known) < len(given):
            strangers = (key for key in given if key not in takes)
            named = list(itertools.islice(strangers, NAMED - len(self.strangers)))
            for key in named:
                what = f"unknown key {show(key)}{did_you_mean(key, fields)}"
                self.strangers.append(Problem(path, what))
            self.more += len(given) - len(known) - len(named)
        made: dict[str, object] = {}
        for key in known:
            a, it = takes[key], given[key]
            if type(it) is _only(a.type):  # most are, and have no path yet
                made[key] = it
            elif it is not None or a.default is attrs.NOTHING or NoneType in get_args(a.type):
                made[key] = self.read(it, a.type, join(path, key), a.metadata.get("most_items"))
        return made


@functools.cache
def _fields(cls: Any) -> dict[str, Any]:
    return {a.name: a for a in fields_of(cls) if a.init}


@functools.cache
def _only(cls: Any) -> Any:
    """The one type that is taken beside null, if it is one."""
    choices = arms(cls) if is_union(cls) else [cls]
    if choices[1:]:
        return None
    return dict if is_mapping(choices[0]) else choices[0]


def _number(value: object, cls: type) -> object:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value) if "." in value else int(value)
    return int(value) if cls is int and isinstance(value, float) and value.is_integer() else value


def _parsed(value: object, cls: Any) -> object:
    """*value*, or the list or object that it spells."""
    sort = _spelled(cls)
    if sort is None or not isinstance(value, str):
        return value
    try:
        check_text(value, SPELLED)
        inner = loads(value)
    except ValueError:
        return value
    return inner if isinstance(inner, sort) else value


@functools.cache
def _spelled(cls: Any) -> type | None:
    """What a string may stand for that is given for a *cls*, if it cannot be just that."""
    choices = arms(cls) if is_union(cls) else [cls]
    if str in choices:
        return None
    if any(map(is_list, choices)):
        return list
    return dict if any(is_mapping(arm) or attrs.has(arm) for arm in choices) else None
