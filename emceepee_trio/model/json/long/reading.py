"""JSON of a peer, however long, as values; what is long in it can stay where it is. Pure."""

from __future__ import annotations

import codecs
from typing import Any, TypeAlias

from ..intake import SLICE, Measure, Steps, Unfit, is_harmless
from .cutting import LongPlace, cut_up
from .joining import Loads, joined, string
from .text import LongText
from .value import LongValue

Left: TypeAlias = "list[LongText | LongValue]"


def read(
    text: bytes | bytearray, measure: Measure, loads: Loads, left: Left | None = None
) -> Steps[Any]:
    """What *text* says; *loads* parses it. What in it is long is added to *left*, and stays where
    it is.

    Raises:
        Unfit: it is not JSON, or too much of it.
    """
    if text.startswith(codecs.BOM_UTF8):
        text = text.removeprefix(codecs.BOM_UTF8)
    try:
        if is_harmless(text, measure):
            return loads(text.decode())
        return (yield from _read_in_parts(text, measure, loads, left))
    except Unfit:
        raise
    except UnicodeDecodeError:
        raise Unfit("is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise Unfit(f"is not JSON: {str(error)[:200]}") from None


def _read_in_parts(
    text: bytes | bytearray, measure: Measure, loads: Loads, left: Left | None
) -> Steps[Any]:
    def long(place: LongPlace) -> Steps[Any]:
        if left is None or place.is_name:
            return (yield from string(text, place, loads))
        if place.is_value:
            left.append((yield from LongValue.found(text, place.first, place.last, loads)))
        else:
            left.append((yield from LongText.found(text, place.first, place.last, SLICE)))
        return left[-1]

    parts = yield from cut_up(text, measure, leaves_values=left is not None)
    if len(parts) > 1:
        yield
    return (yield from joined(parts, text, loads, long))
