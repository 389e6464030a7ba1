"""Forms made of a JSON Schema. Pure; what is filled in is read by `filled.py`.

A schema is a stranger's: whatever it says of a field that is not understood, the field is one for
JSON. Fields are named by their places, since a property may be called anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import attrs

from ...config.bounds import KIB
from ...model.json.weight import is_more_than

MAX_FIELDS = 200
"""Of one form; others are in a field for JSON, which is the last."""
MAX_OPTIONS = 500
"""Of one form; a field with more than are left is a text, of which its server is the judge."""
MAX_DEFAULT = 16 * KIB
"""Bytes of what a field would have in it; it is empty if there is more, and says so."""
FEW = 5
"""Options that are all shown; of more, one is chosen from a list."""
LONG = 120
"""Characters; who may write more has several lines."""

Kind = Literal["text", "long", "number", "yes_no", "choice", "choices", "json"]

_INPUTS = {"email": "email", "uri": "url", "date": "date", "date-time": "datetime-local"}
REST = "rest"
"""The name of the field for all that has no other."""


@attrs.frozen
class Option:
    value: str
    """Its place."""
    title: str
    is_chosen: bool = False


@attrs.frozen
class Field:
    name: str
    """In the form."""
    key: str
    """In the JSON."""
    title: str
    kind: Kind
    is_needed: bool
    input_type: str = "text"
    hint: str = ""
    value: str = ""
    options: tuple[Option, ...] = ()
    values: tuple[Any, ...] = attrs.field(default=(), repr=False)
    """What the options stand for."""
    limits: Mapping[str, Any] = attrs.field(factory=dict)
    """Attributes of the input."""

    @property
    def is_list(self) -> bool:
        """One of many is chosen from a list."""
        return self.kind == "choice" and len(self.options) > FEW


def fields_of(
    schema: object, known: Mapping[str, Any] | None = None, room: int = MAX_OPTIONS
) -> list[Field]:
    """Of an object; with what is *known* already in the place of defaults, and options as far as
    there is *room*.
    """
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    required = schema.get("required") if isinstance(schema, Mapping) else None
    needed = set(map(str, required)) if isinstance(required, list) else set()
    found = []
    named = properties.items() if isinstance(properties, Mapping) else ()
    for n, (key, wanted) in enumerate(islice(named, MAX_FIELDS)):
        wanted = wanted if isinstance(wanted, Mapping) else {}
        if known is not None:
            wanted = {k: v for k, v in wanted.items() if k != "default"}
            wanted |= {"default": known[key]} if key in known else {}
        found.append(_field(f"f{n}", str(key), wanted, room, is_needed=key in needed))
        room -= len(found[-1].options)
    if isinstance(properties, Mapping) and len(properties) > MAX_FIELDS:
        more = f"{len(properties) - MAX_FIELDS} more, as a JSON object"
        found.append(Field(REST, "", "The others", "json", is_needed=False, hint=more))
    return found


def _field(name: str, key: str, wanted: Mapping[str, Any], room: int, *, is_needed: bool) -> Field:
    title, hint = wanted.get("title"), wanted.get("description")
    field = Field(
        name,
        key,
        title if isinstance(title, str) and title else key,
        "text",
        is_needed,
        hint=hint if isinstance(hint, str) else "",
    )
    default = wanted.get("default")
    if is_more_than(default, MAX_DEFAULT):
        default = None
        field = attrs.evolve(field, hint=_joined(field.hint, "what it would be is too long here"))
    if (pairs := _pairs(wanted, room)) is not None:
        return _choice(field, pairs, [default])
    match wanted.get("type"):
        case "boolean":
            pairs = [(True, "Yes"), (False, "No")]
            return attrs.evolve(_choice(field, pairs, [default]), kind="yes_no")
        case "array" if (items := wanted.get("items")) is not None and (
            pairs := _pairs(items, room)
        ) is not None:
            chosen = default if isinstance(default, list) else []
            field = attrs.evolve(field, hint=_joined(field.hint, _count(wanted)))
            return attrs.evolve(_choice(field, pairs, chosen), kind="choices")
        case "string":
            return _text(field, wanted, default)
        case "number" | "integer" as kind:
            return _number(field, wanted, default, kind)
    value = "" if default is None else json.dumps(default, ensure_ascii=False, indent=2)
    return attrs.evolve(field, kind="json", hint=_joined(field.hint, "as JSON"), value=value)


def _pairs(wanted: object, room: int) -> list[tuple[Any, str]] | None:
    """Values to choose from and their titles, if they are told one by one."""
    if not isinstance(wanted, Mapping):
        return None
    for arms in (wanted.get("oneOf"), wanted.get("anyOf")):
        if (
            isinstance(arms, list)
            and 0 < len(arms) <= room
            and all(isinstance(arm, Mapping) and "const" in arm for arm in arms)
        ):
            return [(arm["const"], _said(arm.get("title", arm["const"]))) for arm in arms]
    values = wanted.get("enum")
    if not isinstance(values, list) or not 0 < len(values) <= room:
        return None
    titles = wanted.get("enumNames")
    if not isinstance(titles, list) or len(titles) != len(values):
        titles = values
    return [(value, _said(title)) for value, title in zip(values, titles, strict=True)]


def _choice(field: Field, pairs: Sequence[tuple[Any, str]], chosen: Sequence[Any]) -> Field:
    spelled = set(map(_spelled, chosen))
    options = [
        Option(str(n), title, _spelled(value) in spelled) for n, (value, title) in enumerate(pairs)
    ]
    values = tuple(value for value, _ in pairs)
    return attrs.evolve(field, kind="choice", options=tuple(options), values=values)


def _text(field: Field, wanted: Mapping[str, Any], default: object) -> Field:
    limits = {
        html: wanted[said]
        for said, html in (("minLength", "minlength"), ("maxLength", "maxlength"))
        if isinstance(wanted.get(said), int) and 0 <= wanted[said] < 2**31
    }
    input_type = _INPUTS.get(str(wanted.get("format")), "text")
    is_long = input_type == "text" and limits.get("maxlength", 0) > LONG
    value = default if isinstance(default, str) else ""
    hint = field.hint
    if isinstance(pattern := wanted.get("pattern"), str):
        hint = _joined(hint, f"matches {pattern}")
    if input_type == "datetime-local":
        hint = _joined(hint, f"in the time zone of the daemon, {_zone()}")
        value = _local(value)
    is_long |= input_type == "text" and ("\n" in value or len(value) > LONG)
    return attrs.evolve(
        field,
        kind="long" if is_long else "text",
        input_type=input_type,
        hint=hint,
        value=value,
        limits=limits,
    )


def _number(field: Field, wanted: Mapping[str, Any], default: object, kind: str) -> Field:
    limits: dict[str, Any] = {
        html: wanted[said]
        for said, html in (("minimum", "min"), ("maximum", "max"))
        if isinstance(wanted.get(said), int | float)
    }
    least, most = limits.get("min"), limits.get("max")
    if least is not None and most is not None:
        said = f"from {least} to {most}"
    elif least is not None:
        said = f"at least {least}"
    else:
        said = "" if most is None else f"at most {most}"
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return attrs.evolve(
        field,
        kind="number",
        input_type="number",
        hint=_joined(field.hint, said),
        value=json.dumps(default) if is_number else "",
        limits={**limits, "step": 1 if kind == "integer" else "any"},
    )


def _count(wanted: Mapping[str, Any]) -> str:
    least, most = wanted.get("minItems"), wanted.get("maxItems")
    if isinstance(least, int) and isinstance(most, int):
        return f"choose {least} to {most}"
    if isinstance(least, int):
        return f"choose {least} or more"
    return f"choose up to {most}" if isinstance(most, int) else ""


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _spelled(value: object) -> str:
    """The same for what is the same JSON, and for nothing else."""
    return json.dumps(value, sort_keys=True)


def _zone() -> str:
    return f"UTC{datetime.now().astimezone():%z}"


def _local(value: str) -> str:
    """As an input takes it."""
    try:
        return datetime.fromisoformat(value).astimezone().strftime("%Y-%m-%dT%H:%M")
    except (ValueError, OverflowError):  # no day, or one at the end of all days
        return ""
