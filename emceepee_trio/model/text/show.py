"""Text that a peer wrote, as people are shown it: nothing in it moves their terminal or its lines.

Whatever prints or logs such text passes it through :func:`escaped`, once, where it leaves us.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping

_UNSEEN = (
    *((0x0, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x600, 0x605), (0x61C, 0x61C)),
    *((0x6DD, 0x6DD), (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2), (0x115F, 0x1160)),
    *((0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F)),
    *((0x3164, 0x3164), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB)),
    *((0xFFFE, 0xFFFF), (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1345F)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
"""What Unicode calls control, format, surrogate and separator, and letters and marks that nobody
sees. Listed, since a look at each character of a long text would hold up others."""

_ANY_UNSEEN = re.compile(f"[{''.join(f'{chr(a)}-{chr(b)}' for a, b in _UNSEEN)}]")


def escaped(text: str, *, lines: bool = False) -> str:
    r"""*text* with what has no shape of its own written as JSON writes it: ``\n``, ``\u001b``.

    These are control characters, C1 among them; those that turn the direction of text, or have no
    width; separators of lines and paragraphs; and halves of surrogate pairs. So JSON stays JSON, of
    the same value. With *lines* newlines stay what they are.
    """
    return text.translate(_escapes(lines)) if _ANY_UNSEEN.search(text) else text


def in_ascii(text: str) -> str:
    """*text* for a terminal that knows no more, but for newlines; JSON is the same JSON."""
    return re.sub(r"[^\n -~]", lambda found: _as_json(found[0]), text)


@functools.cache
def _escapes(lines: bool) -> Mapping[int, str]:
    def each() -> Iterator[int]:
        for first, last in _UNSEEN:
            yield from range(first, last + 1)

    return {point: _as_json(chr(point)) for point in each() if not (lines and point == ord("\n"))}


def _as_json(character: str) -> str:
    return json.dumps(character)[1:-1]
