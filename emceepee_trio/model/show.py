"""Text that a peer wrote, as people are shown it: nothing in it moves their terminal or its lines.

Whatever prints or logs such text passes it through :func:`escaped`, once, where it leaves us.
"""

from __future__ import annotations

import json
import re
import unicodedata

_SUSPECT = re.compile(r"[^ -~]")
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufff0-\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are letters or marks to Unicode, or nothing yet, and have no shape."""


def escaped(text: str, *, lines: bool = False) -> str:
    r"""*text* with what has no shape of its own written as JSON writes it: ``\n``, ``\u001b``.

    These are control characters, C1 among them; those that turn the direction of text, or have no
    width; separators of lines and paragraphs; and halves of surrogate pairs. So JSON stays JSON, of
    the same value. With *lines* newlines stay what they are.
    """

    def shown(found: re.Match[str]) -> str:
        character = found[0]
        if (lines and character == "\n") or not _is_unseen(character):
            return character
        return json.dumps(character)[1:-1]

    return _SUSPECT.sub(shown, text)


def _is_unseen(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind in ("Cc", "Cf", "Cs", "Zl", "Zp") or _UNSEEN.match(character) is not None


def in_ascii(text: str) -> str:
    """*text* for a terminal that knows no more, but for newlines; JSON is the same JSON."""
    return re.sub(r"[^\n -~]", lambda found: json.dumps(found[0])[1:-1], text)
