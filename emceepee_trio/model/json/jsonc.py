"""JSON as people and editors write it: with comments and trailing commas, and mistakes.

Keys that stand twice in an object are remembered, since the rest of the world silently drops one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from .intake import TooMuch, check_text

STRING = r'"(?:[^"\\\n]++|\\.)*+"?'
"""Also one that does not end, up to the end of its line."""

_COMMENT = re.compile(rf"{STRING}|//[^\n]*+|/\*.*?\*/", re.DOTALL)
# A comma with nothing before it, as in "[,]", is taken along, so that it stays a mistake.
_TRAILING = re.compile(rf"{STRING}|[\[{{,]\s*+,|,(?=\s*+[\]}}])", re.DOTALL)


class SyntaxProblem(Exception):
    """Not JSON; the text says why and, if that is known, where."""


class Object(dict[str, Any]):
    """An object as it was written."""

    repeated: tuple[str, ...] = ()


def repeated_keys(value: Mapping[str, object]) -> tuple[str, ...]:
    return value.repeated if isinstance(value, Object) else ()


def loads(text: str) -> object:
    """Read *text*.

    Raises:
        SyntaxProblem: it is not JSON, even so.
    """
    plain = _TRAILING.sub(_blank_comma, without_comments(text))
    try:
        check_text(plain, len(plain))
        return json.loads(plain, object_pairs_hook=_object, parse_constant=_refuse)
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno}, column {exc.colno}"
        raise SyntaxProblem(f"{where}: {exc.msg[:1].lower()}{exc.msg[1:]}") from None
    except TooMuch as too_much:
        raise SyntaxProblem(str(too_much).removeprefix("is ")) from None


def without_comments(text: str) -> str:
    """With blanks in their place, so that everything else stands where it did."""
    return _COMMENT.sub(_blank_comment, text)


def _blank_comment(found: re.Match[str]) -> str:
    """Spaces instead, line by line, so that positions stay what they were."""
    text = found[0]
    return text if text[0] == '"' else re.sub(r"[^\n]", " ", text)


def _blank_comma(found: re.Match[str]) -> str:
    return " " if found[0] == "," else found[0]


def _object(pairs: list[tuple[str, Any]]) -> Object:
    made = Object(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        made.repeated = tuple(key for key in made if keys.count(key) > 1)
    return made


def _refuse(constant: str) -> NoReturn:
    raise SyntaxProblem(f"{constant} is not JSON")
