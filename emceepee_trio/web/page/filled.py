"""What was filled into a form, as JSON. Pure. It need not fit: who asks is the judge of that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Protocol

from ...model.wire import loads
from .forms import REST, Field


class Filled(Protocol):
    """What came with a form; see `werkzeug.datastructures.MultiDict`."""

    def get(self, name: str, /) -> str | None: ...

    def getlist(self, name: str, /) -> list[str]: ...


def content_of(fields: Sequence[Field], filled: Filled) -> dict[str, Any]:
    """What was filled in; what is no number or no JSON stays the text that it is."""
    found: dict[str, Any] = {}
    for field in fields:
        if field.name == REST:
            others = _parsed(filled.get(REST) or "{}")
            found |= others if isinstance(others, dict) else {}
            continue
        for value in _values(field, filled):
            found[field.key] = value
    return found


def _values(field: Field, filled: Filled) -> Iterator[Any]:
    """One, or none if it was left out."""
    if field.kind == "choices":
        if (chosen := [_chosen(field, each) for each in filled.getlist(field.name)]) or (
            field.is_needed or any(option.is_chosen for option in field.options)
        ):
            yield chosen
        return
    said = (filled.get(field.name) or "").replace("\r\n", "\n")
    if field.kind in ("choice", "yes_no"):
        if said:
            yield _chosen(field, said)
    elif field.kind in ("text", "long"):
        # Who has emptied a field does not want its default.
        if said or field.is_needed or field.value:
            yield _zoned(said) if field.input_type == "datetime-local" else said
    elif said.strip():
        yield _parsed(said)


def _chosen(field: Field, place: str) -> Any:
    if place.isdecimal() and int(place) < len(field.values):
        return field.values[int(place)]
    return place


def _zoned(said: str) -> str:
    try:
        return datetime.fromisoformat(said).astimezone().isoformat()
    except (ValueError, OverflowError):
        return said


def _parsed(said: str) -> Any:
    try:
        return loads(said)
    except (ValueError, RecursionError):
        return said
