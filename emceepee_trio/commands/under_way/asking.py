"""A form in a terminal: one line for each field, asked again until it can be taken."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...web.page.filled import content_of
from ...web.page.forms import Field, fields_of
from ..common.output import flush, say

MOST = 1 << 20
"""Bytes of a line."""


class LeftOpen(Exception):
    """Nobody answers: the end of input."""


def ask(prompt: str) -> str:
    """
    Raises:
        LeftOpen: there is no line.
    """
    # What a server has written is in no prompt.
    sys.stdout.write(prompt)
    flush()
    line = bytearray()
    # Not by sys.stdin: a thread that still reads there when the process ends holds its lock.
    while len(line) < MOST and (byte := os.read(sys.stdin.fileno(), 1)):
        line += byte
        if byte == b"\n":
            return line.decode(sys.stdin.encoding, "replace").rstrip("\r\n")
    say()
    raise LeftOpen


def form(schema: object) -> dict[str, Any]:
    """
    Raises:
        LeftOpen: input ends.
    """
    fields = fields_of(schema)
    filled = _Filled()
    for field in fields:
        while not _take(field, filled):
            pass
    return content_of(fields, filled)


def text() -> str:
    """Lines, up to an empty one.

    Raises:
        LeftOpen: input ends before there is one.
    """
    say("Write the answer; an empty line ends it.")
    lines: list[str] = []
    while True:
        line = ask("> ")
        if line:
            lines.append(line)
        elif lines:
            return "\n".join(lines)


@attrs.define(eq=False)
class _Filled:
    """What was typed, by the name of the field."""

    values: dict[str, list[str]] = attrs.field(factory=dict, init=False)

    def get(self, name: str, /) -> str | None:
        return next(iter(self.values.get(name, ())), None)

    def getlist(self, name: str, /) -> list[str]:
        return self.values.get(name, [])


def _take(field: Field, filled: _Filled) -> bool:
    """Ask for one field; whether what was typed can be one."""
    about = [field.hint] if field.hint else []
    default = field.value or ", ".join(each.title for each in field.options if each.is_chosen)
    about.append("required" if field.is_needed else "Enter leaves it out" if not default else "")
    if default:
        about.append(f"Enter for {default}")
    say(
        f"\n{field.title}"
        + "".join(f" ({said})" for said in ["; ".join(filter(None, about))] if said)
    )
    for number, option in enumerate(field.options, 1):
        say(f"  {number}  {option.title}")
    said = ask("> ").strip()
    if not said:
        if default:
            chosen = [option.value for option in field.options if option.is_chosen]
            filled.values[field.name] = chosen or [field.value]
            return True
        if field.is_needed:
            say("It is required.")
        return not field.is_needed
    if not field.options:
        filled.values[field.name] = [said]
        return True
    words = said.split(",") if field.kind == "choices" else [said]
    places = [place_of(field, word.strip()) for word in words]
    if None in places:
        say("Take one of the numbers, or what stands behind it.")
        return False
    filled.values[field.name] = [place for place in places if place is not None]
    return True


def place_of(field: Field, word: str) -> str | None:
    """Of the option that is meant by its number, its title or its value."""
    titles: Sequence[str] = [option.title.lower() for option in field.options]
    if word.isdecimal() and 1 <= int(word) <= len(field.options) and word not in titles:
        return field.options[int(word) - 1].value
    names = [str(value).lower() for value in field.values]
    for known in (titles, names):
        if word.lower() in known:
            return field.options[known.index(word.lower())].value
    if field.kind == "yes_no" and word.lower() in ("y", "n"):
        return field.options["yn".index(word.lower())].value
    return None


def typed(schema: object, words: Mapping[str, str]) -> dict[str, Any]:
    """``KEY=VALUE`` as the form wants it; what is in no field is left as it is."""
    from ..common.given import Given

    given = Given()
    known = {field.key: field for field in fields_of(schema)}
    found: dict[str, Any] = {}
    for key, word in words.items():
        field = known.get(key)
        if field is None or not field.options:
            given.words[key] = word
            continue
        parts = word.split(",") if field.kind == "choices" else [word]
        places = [place_of(field, part.strip()) for part in parts]
        values = [
            part if place is None else field.values[int(place)]
            for part, place in zip(parts, places, strict=True)
        ]
        found[key] = values if field.kind == "choices" else values[0]
    return given.typed(schema if isinstance(schema, Mapping) else {}) | found
