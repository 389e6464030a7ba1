"""Strict JSON to frozen attrs classes, every problem at once and each with its path.

Nothing is coerced: ``"5"`` is no integer, ``true`` is no number, an unknown key is a mistake. What
models send goes through ``lenient`` first.
A class says what it takes with its annotations and the marks of ``fields`` in them; from the same
:func:`json_schema` says it to a model. This module knows neither configuration nor tools.

Understood: ``str int float bool None Any``, ``Literal``, ``X | Y``, ``tuple[X, ...]``, ``list[X]``,
``Mapping[str, X]``, and attrs classes. A class with a method ``problems()`` is asked once its
fields are right; it yields what is wrong between them, with paths relative to itself.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

import attrs
from cattrs import Converter

from .fields import fields_of
from .problems import Expanded, Invalid, Problem, bounds, did_you_mean, join, kind, show
from .schema import arms, is_list, is_literal, is_mapping, is_union, item_type, json_schema

__all__ = ["Expanded", "Invalid", "Problem", "json_schema", "structure"]

T = TypeVar("T")

MISTAKES = 20
"""Told of one list or object; the others are only counted."""


def structure(
    data: object,
    cls: type[T],
    *,
    path: str = "",
    aliases: Mapping[str, str] = {},
) -> T:
    """Make a *cls* of *data*.

    *aliases* are other spellings of field names, in every class on the way.

    Raises:
        Invalid: with every problem, paths starting at *path*.
    """
    converter = _converter(tuple(sorted(aliases.items())))
    try:
        return converter.structure(data, cls)
    except _Wrong as wrong:
        raise Invalid([mistake.problem(path) for mistake in wrong.mistakes]) from None


# Structuring. A hook raises _Wrong with steps that start at its own value; whoever holds that
# value puts the step to it in front. Values are written out only at the very end, so that a
# secret field can hide them in everything below it.


_NO_VALUE = object()


@attrs.frozen
class _Mistake:
    steps: tuple[str | int, ...]
    message: str
    got: object = _NO_VALUE
    hidden: bool = False
    tail: str = ""
    """The rest of the path, already written out."""

    def under(self, key: str | int, hide: bool) -> _Mistake:
        return attrs.evolve(self, steps=(key, *self.steps), hidden=self.hidden or hide)

    def problem(self, path: str) -> Problem:
        message = self.message
        if self.got is not _NO_VALUE:
            message += f", got {kind(self.got) if self.hidden else show(self.got)}"
        return Problem(functools.reduce(join, self.steps, path) + self.tail, message)


class _Wrong(Exception):
    def __init__(self, *mistakes: _Mistake) -> None:
        self.mistakes = mistakes


Hook = Callable[[Any, Any], Any]


def _expected(what: str, got: object) -> _Wrong:
    return _Wrong(_Mistake((), f"expected {what}", got))


def _string(value: Any, _: Any) -> str:
    if not isinstance(value, str):
        raise _expected("a string", value)
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        raise _expected("a string of valid Unicode", value) from None
    return value


def _integer(value: Any, _: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _expected("an integer", value)
    return value


def _number(value: Any, _: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            if math.isfinite(number := float(value)):
                return number
        except OverflowError:
            pass
    raise _expected("a number", value)


def _boolean(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise _expected("true or false", value)
    return value


def _literal(value: Any, cls: Any) -> Any:
    for choice in get_args(cls):
        if value == choice and isinstance(value, bool) == isinstance(choice, bool):
            return choice
    choices = [show(choice) for choice in get_args(cls)]
    raise _expected(f"one of {', '.join(choices)}" if choices[1:] else choices[0], value)


_SCALARS: dict[Any, tuple[str, Hook]] = {
    str: ("a string", _string),
    int: ("an integer", _integer),
    float: ("a number", _number),
    bool: ("true or false", _boolean),
}


def _sort(cls: Any) -> str:
    """What JSON a type takes, in the words of a problem."""
    if cls in _SCALARS:
        return _SCALARS[cls][0]
    if is_literal(cls):
        return " or ".join(map(show, get_args(cls)))
    return "a list" if is_list(cls) else "an object"


def _fits(value: object, cls: Any) -> bool:
    """Whether *value* is the sort of JSON that *cls* takes; what is in it may still be wrong."""
    if cls in _SCALARS or is_literal(cls):
        try:
            (_SCALARS[cls][1] if cls in _SCALARS else _literal)(value, cls)
        except _Wrong:
            return False
        return True
    return cls is Any or isinstance(value, list | tuple if is_list(cls) else Mapping)


def _too_long(value: str, longest: int) -> _Mistake:
    return _Mistake((), f"too long: {len(value)} characters, at most {longest}")


def _excess(value: object, metadata: Mapping[str, Any]) -> Iterator[_Mistake]:
    """Where *value*, of any type, is more than is going to be looked at."""
    items = metadata.get("most_items", metadata.get("max_length"))
    longest = metadata.get("most_characters")
    if isinstance(value, str):
        if longest is not None and len(value) > longest:
            yield _too_long(value, longest)
    elif isinstance(value, list | tuple | Mapping):
        if items is not None and len(value) > items:
            yield _Mistake((), f"too many: {len(value)}, at most {items}")
        elif longest is not None:
            for key, item in _items(value):
                if isinstance(key, str) and len(key) > longest:
                    yield _too_long(key, longest).under(key, False)
                elif isinstance(item, str) and len(item) > longest:
                    yield _too_long(item, longest).under(key, False)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, Mapping) else enumerate(value)


_LIMITS = {"most_items", "max_length", "most_characters"}
"""Marks of a field that say what is looked at."""
_BOUNDS = {"low", "high", "max_length", "pattern", "expected"}
"""Those that say what of it is right."""
_OF_EACH = {"low", "high", "pattern", "expected"}
"""Bounds that hold for what is in a list or an object, however deep."""


def _breaches(value: object, metadata: Mapping[str, Any]) -> Iterator[_Mistake]:
    """Where *value*, of the right type, leaves the bounds of its field."""
    low, high = metadata.get("low"), metadata.get("high")
    longest, pattern = metadata.get("max_length"), metadata.get("pattern")
    match value:
        case bool():
            return
        case int() | float():
            if (low is not None and value < low) or (high is not None and value > high):
                yield _Mistake((), f"out of range, expected {bounds(low, high)}", value)
        case str():
            if longest is not None and len(value) > longest:
                yield _too_long(value, longest)
            elif pattern is not None and not re.fullmatch(pattern, value):
                wanted = metadata.get("expected", f"to match {pattern}")
                yield _Mistake((), f"expected {wanted}", value)
        case tuple() | list() | Mapping():
            rest = {name: bound for name, bound in metadata.items() if name in _OF_EACH}
            # What has none may be a stranger's, and of any size.
            for key, item in _items(value) if rest else ():
                yield from (mistake.under(key, False) for mistake in _breaches(item, rest))


@functools.lru_cache(maxsize=16)
def _converter(aliases: tuple[tuple[str, str], ...]) -> Converter:
    converter, renamed = Converter(), dict(aliases)

    def each(value: Any, cls: Any) -> dict[Any, Any]:
        items = _items(value)
        if cls is Any:
            return value if type(value) is dict else dict(items)
        made: dict[Any, Any] = {}
        mistakes: list[_Mistake] = []
        for n, (key, item) in enumerate(items, 1):
            try:
                made[key] = converter.structure(item, cls)
            except _Wrong as wrong:
                mistakes += [mistake.under(key, False) for mistake in wrong.mistakes]
                if len(mistakes) >= MISTAKES and n < len(value):
                    mistakes.append(_Mistake((), f"and {len(value) - n} more, not looked at"))
                    break
        if mistakes:
            raise _Wrong(*mistakes)
        return made

    def a_list(value: Any, cls: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _expected("a list", value)
        made = each(value, item_type(cls)).values()
        return list(made) if (get_origin(cls) or cls) is list else tuple(made)

    def a_mapping(value: Any, cls: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _expected("an object", value)
        return each(value, item_type(cls))

    def a_union(value: Any, cls: Any) -> Any:
        if value is None and NoneType in get_args(cls):
            return None
        choices = arms(cls)
        fitting = [arm for arm in choices if _fits(value, arm)] if choices[1:] else choices
        for arm in fitting[:-1]:
            try:
                return converter.structure(value, arm)
            except _Wrong:
                continue
        if not fitting:
            raise _expected(" or ".join(map(_sort, choices)), value)
        return converter.structure(value, fitting[-1])

    def a_class(cls: Any) -> Hook:
        # Any, since attrs types what it has set by now (type, alias) as perhaps missing.
        fields: dict[str, Any] = {a.name: a for a in fields_of(cls) if a.init}
        limited = {name for name, a in fields.items() if _LIMITS & a.metadata.keys()}
        bounded = {name for name, a in fields.items() if _BOUNDS & a.metadata.keys()}

        def hook(value: Any, _: Any) -> Any:
            if not isinstance(value, Mapping):
                raise _expected("an object", value)
            mistakes: list[_Mistake] = []
            written: dict[str, str] = {}
            unknown = 0
            for key in map(str, value):
                name = key if key in fields else renamed.get(key, key)
                if name not in fields:
                    unknown += 1
                    if unknown <= MISTAKES:
                        hint = did_you_mean(key, fields)
                        mistakes.append(_Mistake((), f"unknown key {show(key)}{hint}"))
                elif name in written:
                    mistakes.append(_Mistake((key,), f"given twice, also as {written[name]}"))
                else:
                    written[name] = key
            if unknown > MISTAKES:
                mistakes.append(_Mistake((), f"and {unknown - MISTAKES} more unknown keys"))
            made = {}
            for name, a in fields.items():
                key, hide = written.get(name, name), "secret" in a.metadata
                if key not in value:
                    if a.default is attrs.NOTHING:
                        mistakes.append(_Mistake((key,), "missing"))
                    continue
                # No exception is kept: its traceback leads to this frame, and so to all of *data*.
                found: tuple[_Mistake, ...] = ()
                if name in limited:
                    found = tuple(itertools.islice(_excess(value[key], a.metadata), MISTAKES))
                if not found:
                    try:
                        made[a.alias] = converter.structure(value[key], a.type)
                    except _Wrong as wrong:
                        found = wrong.mistakes
                    else:
                        if name in bounded:
                            breaches = _breaches(made[a.alias], a.metadata)
                            found = tuple(itertools.islice(breaches, MISTAKES))
                if found:
                    mistakes += [mistake.under(key, hide) for mistake in found]
            if mistakes:
                raise _Wrong(*mistakes)
            instance = cls(**made)
            for problem in getattr(instance, "problems", tuple)():
                name = re.split(r"\W", problem.path, maxsplit=1)[0]
                steps = (written.get(name, name),) if name else ()
                mistakes.append(_Mistake(steps, problem.message, tail=problem.path[len(name) :]))
            if mistakes:
                raise _Wrong(*mistakes)
            return instance

        return hook

    for scalar, (_, check) in _SCALARS.items():
        converter.register_structure_hook(scalar, check)
    converter.register_structure_hook_func(lambda cls: cls in (Any, object), lambda value, _: value)
    converter.register_structure_hook_func(is_literal, _literal)
    converter.register_structure_hook_func(is_list, a_list)
    converter.register_structure_hook_func(is_mapping, a_mapping)
    converter.register_structure_hook_func(is_union, a_union)
    converter.register_structure_hook_factory(attrs.has, a_class)
    return converter
