"""reStructuredText: what all of it is made of."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, 118, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def escaped(text: str) -> str:
    """As it is to be read, whatever it has of what means something here."""
    return re.sub(r"[\\*`|]|_\b", r"\\\g<0>", text)


def paragraphs(text: str) -> list[str]:
    """Of a docstring or description, each in one line."""
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def coded(text: str) -> str:
    """One of ours: what is in single backticks there is a name, here as well."""
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)


def heading(title: str, line: str, label: str = "") -> Iterator[str]:
    if label:
        yield from (f".. _{label}:", "")
    yield from (title, line * len(title), "")


def table(widths: str, head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield from (".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "")
    for first, *others in (head, *rows):
        yield f"   * - {first}"
        yield from (f"     - {other}".rstrip() for other in others)
