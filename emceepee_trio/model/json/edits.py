"""Changes to JSON that somebody else has written: comments, order and white space stay as they are.

What stands where is found in a copy whose comments are blanks, so that its positions are those of
the text. The text has to be JSON as `jsonc` reads it, with an object in it or nothing at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import attrs

from . import jsonc

_TOKEN = re.compile(rf'{jsonc.STRING}|[][{{}}:,]|[^][{{}}:,"\s]+')
_INDENT = re.compile(r"([ \t]*)\Z")
_BLANKS = " \t\r\n"


class NoObject(Exception):
    """What stands on the way to what shall be changed is no object; the text says which."""


@attrs.frozen
class _Member:
    key: str
    start: int
    value: int
    """Where its value begins."""
    end: int


@attrs.frozen
class _Written:
    """An object, from its brace to behind the other one."""

    start: int
    end: int
    members: tuple[_Member, ...]
    comma: int | None
    """Behind the last of them, where there is one."""

    def get(self, key: str) -> _Member | None:
        """The last of that name, as everybody reads it."""
        return next((each for each in reversed(self.members) if each.key == key), None)


def put(text: str, path: Sequence[str], entries: Mapping[str, object]) -> str:
    """With all these *entries* in the object at *path*; what is missing on the way is made.

    Raises:
        NoObject: something else is in the way.
    """
    plain = jsonc.without_comments(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    if not plain.strip():
        before = text if not text or text.endswith("\n") else text + newline
        return before + _dumped(_within(path, entries), newline, "  ", "") + newline
    here = _object(plain, _TOKEN.search(plain), "the file")
    unit = _unit(plain, here)
    for depth, name in enumerate(path):
        if (member := here.get(name)) is None:
            entries = _within(path[depth:], entries)
            break
        here = _object(plain, _TOKEN.search(plain, member.value), ".".join(path[: depth + 1]))
    there = {member.key: member for member in here.members}
    new = {key: value for key, value in entries.items() if key not in there}
    after = _added(text, plain, here, new, (newline, unit)) if new else text
    # From the last to the first, so that all before it is where it was.
    for member in sorted((there[key] for key in entries if key in there), key=_place)[::-1]:
        value = entries[member.key]
        if jsonc.loads(text[member.value : member.end]) == value:
            continue
        indent = _indent(plain, member.start)
        said = json.dumps(value, ensure_ascii=False)
        if indent is not None:
            said = _dumped(value, newline, unit, indent)
        after = after[: member.value] + said + after[member.end :]
    return after


def _within(path: Sequence[str], entries: Mapping[str, object]) -> Mapping[str, object]:
    for name in reversed(path):
        entries = {name: entries}
    return entries


def _place(member: _Member) -> int:
    return member.start


def take(text: str, path: Sequence[str], key: str) -> str:
    """Without *key* of the object at *path*; as it is if there is no such key.

    Raises:
        NoObject: something else is in the way.
    """
    plain = jsonc.without_comments(text)
    if not plain.strip():
        return text
    here = _object(plain, _TOKEN.search(plain), "the file")
    for depth, name in enumerate(path):
        if (member := here.get(name)) is None:
            return text
        here = _object(plain, _TOKEN.search(plain, member.value), ".".join(path[: depth + 1]))
    if (gone := here.get(key)) is None:
        return text
    place = here.members.index(gone)
    is_last, end = place + 1 == len(here.members), gone.end
    if not is_last or here.comma is not None:
        end = plain.index(",", end) + 1
    start = len(text[: gone.start].rstrip(_BLANKS))
    behind = text[end:].lstrip(" \t")[:1]
    follows_comment = len(plain[:start].rstrip(_BLANKS)) < start
    if behind not in ("\r", "\n") and (behind != "}" or follows_comment):
        start = gone.start  # a comment before it may end with its line, and this line goes on
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    if is_last and here.comma is None and place:
        comma = plain.index(",", here.members[place - 1].end)
        text = text[:comma] + text[comma + 1 : start] + text[end:]
    else:
        text = text[:start] + text[end:]
    rest = text[here.start + 1 :].lstrip(_BLANKS)
    return text[: here.start + 1] + rest if rest.startswith("}") else text


def _added(
    text: str, plain: str, here: _Written, new: Mapping[str, object], style: tuple[str, str]
) -> str:
    newline, unit = style
    named = [(json.dumps(key, ensure_ascii=False), value) for key, value in new.items()]
    close = here.end - 1
    last = len(text[:close].rstrip(_BLANKS))  # of what is in there, be it a comment
    is_alone = not here.members
    indent = _indent(plain, here.members[0].start) if here.members else None
    tail = text[last:close]
    if is_alone and ("\n" in text.strip(_BLANKS) or not plain[: here.start].strip(_BLANKS)):
        line = plain[plain.rfind("\n", 0, here.start) + 1 : here.start]
        outer = line[: len(line) - len(line.lstrip())]
        indent = outer + unit
        tail = tail if "\n" in tail else newline + outer
    if indent is None:  # all on one line
        said = ", ".join(f"{name}: {json.dumps(it, ensure_ascii=False)}" for name, it in named)
        at = last if is_alone else here.members[-1].end if here.comma is None else here.comma + 1
        between = "" if is_alone else ", " if here.comma is None else " "
        return text[:at] + between + said + text[at:]
    start = f"{newline}{indent}"
    said = ",".join(f"{start}{name}: {_dumped(it, newline, unit, indent)}" for name, it in named)
    if here.comma is not None:
        return text[:last] + said + "," + tail + text[close:]
    end = last if is_alone else here.members[-1].end
    comma = "" if is_alone else ","
    return text[:end] + comma + text[end:last] + said + tail + text[close:]


def _dumped(value: object, newline: str, unit: str, indent: str) -> str:
    """Its lines but the first begin with *indent*."""
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent(plain: str, at: int) -> str | None:
    """What is before it on its line, if that is nothing but white space."""
    found = _INDENT.search(plain[plain.rfind("\n", 0, at) + 1 : at])
    return found[1] if found is not None and plain.rfind("\n", 0, at) >= 0 else None


def _unit(plain: str, root: _Written) -> str:
    """By how much this file indents."""
    return (_indent(plain, root.members[0].start) if root.members else None) or "  "


def _object(plain: str, first: re.Match[str] | None, where: str) -> _Written:
    """What begins with that token."""
    if first is None or first[0] != "{":
        raise NoObject(f"{where} is no object")
    members: list[_Member] = []
    depth, last, comma = 0, first, None
    key: re.Match[str] | None = None
    value: re.Match[str] | None = None

    def ended() -> None:
        if key is not None and value is not None:
            name = json.loads(key[0])
            members.append(_Member(name, key.start(), value.start(), last.end()))

    for token in _TOKEN.finditer(plain, first.start()):
        sign = token[0]
        if sign in "}]":
            depth -= 1
            if depth == 0:
                ended()
                return _Written(first.start(), token.end(), tuple(members), comma)
        if depth == 1 and sign == ",":
            ended()
            key, value, comma = None, None, token.start()
        elif depth == 1 and sign != ":":
            if key is None:
                key, comma = token, None
            elif value is None:
                value = token
        if sign in "{[":
            depth += 1
        last = token
    raise NoObject(f"{where} does not end")
