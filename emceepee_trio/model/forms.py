"""What a client fills into a backend's form: the defaults, and what does not fit. Pure.

The schema is a stranger's, and so is its size. Forms are small and flat, and these are checked as
JSON Schema has it (2020-12, and its words are those of the library `jsonschema`). Of the others
only so much is looked at as takes `STEPS`: nothing refers to anything else, nothing is fetched,
nothing is compared with each of the others. The backend checks the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import attrs

from .json.intake import Steps
from .json.weight import beginning, weigh
from .text.patterns import Explosive, NoPattern, compiled

STEPS = 5000
"""Looks at one value, with one schema or alone. A form that needs more is not looked at."""
BREATH = 200
"""Of them, after which others have their turn."""

MATCHING = 0.02
"""Seconds that a pattern may take on one text. One that takes longer counts as fitting, and with it
all that come later."""
PATTERNS = 50
PATTERN = 500
"""Texts that are matched for one form, and characters of a pattern; others count as fitting."""

TOLD = 20
"""Mismatches that are told."""

SHOWN = 300
"""Characters of a value that a mismatch shows."""

TYPES: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, Mapping),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
}
_is_number, _is_integer = TYPES["number"], TYPES["integer"]
_ARMS = ("anyOf", "oneOf", "allOf")


class UnusableForm(ValueError):
    """Its schema is none, or more than is looked at."""


def filled(schema: Mapping[str, Any], content: Mapping[str, Any]) -> Steps[dict[str, Any]]:
    """*content* with the defaults of what it leaves out."""
    properties = schema.get("properties")
    found = dict(content)
    named = properties.items() if isinstance(properties, Mapping) else ()
    for n, (name, wanted) in enumerate(named, 1):
        if n % BREATH == 0:
            yield
        if name not in found and isinstance(wanted, Mapping) and "default" in wanted:
            found[name] = wanted["default"]
    return found


def mismatches(schema: Mapping[str, Any], content: Mapping[str, Any]) -> Steps[list[str]]:
    """Every way in which *content* does not fit, each with its path; not more than are read.

    Raises:
        UnusableForm: nothing could fit, or anything.
    """
    check, found = _Check(), list[str]()
    try:
        yield from check.schema(schema)
        for said in check.value(schema, dict(content), ()):
            if said is None:
                yield
                continue
            found.append(said)
            if len(found) == TOLD:
                break
        return found
    except (ArithmeticError, RecursionError) as error:  # a number beyond all others, or levels
        raise UnusableForm(type(error).__name__) from None


def has_patterns(schema: object) -> Steps[bool]:
    """Whether anything takes longer than steps do."""
    rest, looks = [schema], 0
    while rest and looks <= STEPS:
        looks += 1
        if looks % BREATH == 0:
            yield
        each = rest.pop()
        if isinstance(each, Mapping):
            if "pattern" in each:
                return True
            rest += islice(each.values(), STEPS)
        elif isinstance(each, list):
            rest += islice(each, STEPS)
    return False


@attrs.define(eq=False)
class _Check:
    """One form."""

    _left: int = attrs.field(default=STEPS, init=False)
    _next: int = attrs.field(default=STEPS - BREATH, init=False)
    """How many are left when others have their turn."""
    _matches: int = attrs.field(default=PATTERNS, init=False)
    _known: dict[int, set[Any]] = attrs.field(factory=dict, init=False)

    def _step(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise UnusableForm("more than is looked at")

    def _is_long(self) -> bool:
        """Whether others have their turn now."""
        if self._left > self._next:
            return False
        self._next = self._left - BREATH
        return True

    # Whether it is a schema

    def schema(self, schema: object) -> Steps[None]:
        self._step()
        if self._is_long():
            yield
        if isinstance(schema, bool):
            return
        if not isinstance(schema, Mapping):
            raise UnusableForm("not a schema")
        for key, is_sound in _SOUND.items():
            if key in schema:
                self._step(len(schema[key]) if isinstance(schema[key], list) else 1)
                if not is_sound(schema[key]):
                    raise UnusableForm(key)
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and len(pattern) <= PATTERN and self._matches > 0:
            try:
                compiled(pattern)
            except Explosive:
                pass  # whatever it is, it is not matched
            except NoPattern:
                raise UnusableForm("pattern") from None
        for key in ("items", "additionalProperties"):
            if key in schema:
                yield from self.schema(schema[key])
        for key in _ARMS:
            if isinstance(arms := schema.get(key), list):
                if not arms:
                    raise UnusableForm(key)
                for arm in arms:
                    yield from self.schema(arm)
        if isinstance(properties := schema.get("properties"), Mapping):
            for each in properties.values():
                yield from self.schema(each)

    # Whether a value fits: what does not; ``None`` ends a step

    def value(self, schema: Any, value: Any, path: tuple[str | int, ...]) -> Iterator[str | None]:
        self._step()
        if self._is_long():
            yield None
        at = ".".join(map(str, path)) + (": " if path else "")
        if isinstance(schema, bool):
            if not schema:
                yield f"{at}False schema does not allow {_shown(value)}"
            return
        for key, check in _CHECKS.items():
            if key in schema:
                for said in check(self, schema[key], value):
                    yield said and at + said
        items = schema.get("items")
        if items is not None and isinstance(value, list):
            for n, item in enumerate(value):
                yield from self.value(items, item, (*path, n))
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            properties = {}
        if isinstance(value, Mapping) and "additionalProperties" in schema:
            self._step(len(value))
            extras = [name for name in value if name not in properties]
            others = schema["additionalProperties"]
            if others is False and extras:
                said = ", ".join(_shown(name) for name in sorted(extras, key=str))
                was = "was" if len(extras) == 1 else "were"
                yield f"{at}Additional properties are not allowed ({said} {was} unexpected)"
            elif isinstance(others, Mapping):
                for name in extras:
                    yield from self.value(others, value[name], (*path, name))
        yield from self._arms(schema, value, path, at)
        if isinstance(value, Mapping):
            for name, each in properties.items():
                if name in value:
                    yield from self.value(each, value[name], (*path, name))

    def _arms(
        self, schema: Any, value: Any, path: tuple[str | int, ...], at: str
    ) -> Iterator[str | None]:
        arms = {key: schema[key] for key in _ARMS if isinstance(schema.get(key), list)}
        if "anyOf" in arms and not (yield from self._fitting(arms["anyOf"], value, 1)):
            yield f"{at}{_shown(value)} is not valid under any of the given schemas"
        if "oneOf" in arms:
            fitting = yield from self._fitting(arms["oneOf"], value, len(arms["oneOf"]))
            first, *more = fitting or [None]
            if first is None:
                yield f"{at}{_shown(value)} is not valid under any of the given schemas"
            elif more:
                said = ", ".join(map(_shown, [*more, first]))
                yield f"{at}{_shown(value)} is valid under each of {said}"
        for arm in arms.get("allOf", ()):
            yield from self.value(arm, value, path)

    def _fitting(self, arms: list[Any], value: Any, most: int) -> Steps[list[Any]]:
        """The first *most* that do."""
        found: list[Any] = []
        for arm in arms:
            for said in self.value(arm, value, ()):
                if said is not None:
                    break
                yield
            else:
                found.append(arm)
                if len(found) == most:
                    break
        return found

    def type(self, wanted: Any, value: Any) -> Iterator[str]:
        types = [wanted] if isinstance(wanted, str) else wanted
        if not any(TYPES[each](value) for each in types):
            yield f"{_shown(value)} is not of type {', '.join(map(repr, types))}"

    def enum(self, wanted: list[Any], value: Any) -> Iterator[str | None]:
        if id(wanted) not in self._known:
            self._known[id(wanted)] = yield from self._different(wanted)
        if self._same(value) not in self._known[id(wanted)]:
            yield f"{_shown(value)} is not one of {_shown(wanted)}"

    def const(self, wanted: Any, value: Any) -> Iterator[str]:
        if self._same(value) != self._same(wanted):
            yield f"{_shown(wanted)} was expected"

    def unique_items(self, wanted: bool, value: Any) -> Iterator[str | None]:
        is_checked = wanted and isinstance(value, list)
        if is_checked and len((yield from self._different(value))) < len(value):
            yield f"{_shown(value)} has non-unique elements"

    def _different(self, values: list[Any]) -> Steps[set[Any]]:
        found: set[Any] = set()
        for value in values:
            found.add(self._same(value))
            if self._is_long():
                yield
        return found

    def _same(self, value: Any) -> Any:
        """Something that is equal, and has the same hash, for values that are equal in JSON."""
        self._step()
        if isinstance(value, dict):
            return ("o", frozenset((key, self._same(inner)) for key, inner in value.items()))
        if isinstance(value, list):
            return ("l", tuple(map(self._same, value)))
        return (isinstance(value, bool), value)

    def required(self, wanted: list[str], value: Any) -> Iterator[str]:
        if isinstance(value, Mapping):
            for name in wanted:
                if name not in value:
                    yield f"{_shown(name)} is a required property"

    def pattern(self, wanted: str, value: Any) -> Iterator[str]:
        if not isinstance(value, str) or len(wanted) > PATTERN or self._matches <= 0:
            return
        self._matches -= 1
        try:
            if compiled(wanted).search(value, timeout=MATCHING, concurrent=True) is None:
                yield f"{_shown(value)} does not match {_shown(wanted)}"
        except NoPattern:
            pass
        except TimeoutError:
            self._matches = 0

    def multiple_of(self, wanted: float, value: Any) -> Iterator[str]:
        if not _is_number(value):
            return
        if isinstance(wanted, float):
            quotient = value / wanted
            try:
                fails = int(quotient) != quotient
            except (OverflowError, ValueError):  # a server's default may be no finite number
                fails = Fraction(value) % Fraction(wanted) != 0
        else:
            fails = bool(value % wanted)
        if fails:
            yield f"{_shown(value)} is not a multiple of {wanted!r}"


def _number(says: Callable[[Any, Any], bool], what: str) -> Any:
    def check(_: _Check, wanted: float, value: Any) -> Iterator[str]:
        if _is_number(value) and says(value, wanted):
            yield f"{_shown(value)} is {what} of {wanted!r}"

    return check


def _length(of: type, at_least: bool) -> Any:
    special, empty, wrong = (1, "should be non-empty", "is too short")
    if not at_least:
        special, empty, wrong = (0, "is expected to be empty", "is too long")

    def check(_: _Check, wanted: float, value: Any) -> Iterator[str]:
        if isinstance(value, of):
            length = len(value)  # type: ignore[arg-type]  # a str or a list
            if length < wanted if at_least else length > wanted:
                yield f"{_shown(value)} {empty if wanted == special else wrong}"

    return check


_CHECKS: Mapping[str, Any] = {
    "type": _Check.type,
    "enum": _Check.enum,
    "const": _Check.const,
    "required": _Check.required,
    "minLength": _length(str, True),
    "maxLength": _length(str, False),
    "pattern": _Check.pattern,
    "minimum": _number(lambda value, low: value < low, "less than the minimum"),
    "maximum": _number(lambda value, high: value > high, "greater than the maximum"),
    "exclusiveMinimum": _number(
        lambda value, low: value <= low, "less than or equal to the minimum"
    ),
    "exclusiveMaximum": _number(
        lambda value, high: value >= high, "greater than or equal to the maximum"
    ),
    "multipleOf": _Check.multiple_of,
    "minItems": _length(list, True),
    "maxItems": _length(list, False),
    "uniqueItems": _Check.unique_items,
}
"""What a value is checked for, in the order in which it is told."""


def _is_size(value: Any) -> bool:
    return _is_integer(value) and value >= 0


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    is_some = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return is_some and bool(value) and len(set(value)) == len(value) and set(value) <= set(TYPES)


def _is_names(value: Any) -> bool:
    is_some = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return is_some and len(set(value)) == len(value)


_SOUND: Mapping[str, Callable[[Any], bool]] = {
    "type": _is_type,
    "enum": lambda value: isinstance(value, list),
    "required": _is_names,
    "pattern": lambda value: isinstance(value, str),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    "uniqueItems": lambda value: isinstance(value, bool),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_size),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
}


def _shown(value: Any) -> str:
    return repr(value) if weigh(value) <= SHOWN else beginning(value, SHOWN)
