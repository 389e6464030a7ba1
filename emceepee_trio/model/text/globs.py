"""Whether a word is one that a glob stands for, where the glob says what is allowed.

Stricter than a shell's and than :mod:`fnmatch`, because whoever writes ``files-*`` or ``/srv/*``
means names, and not ``files-@npm:others`` or ``/srv/../etc``:

* ``*`` and ``?`` in a word, and ``[abc]``, stand for printable characters but ``/`` and ``:``;
  where a word, a part of a path or a value (``--x=*``) begins, neither for ``.`` nor for ``-``;
* ``*`` as a whole word stands for any word that does not begin with ``-``: for no option;
* ``**`` stands for any text.

What is written literally is always meant. Takes time that grows with the lengths of both, whatever
is in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

LONGEST = 1024
"""Characters of a word that a wildcard may stand for a part of; a longer one is not matched."""

_PIECE = re.compile(r"\*\*+|\[!?\]?[^\]]*\]|.", re.DOTALL)


def matches(glob: str, word: str) -> bool:
    if glob == word:
        return True
    if glob == "*":
        return not word.startswith("-")
    if len(word) > LONGEST:
        return False
    pieces = _PIECE.findall(glob)
    # Where in the glob one can be after what has been read of the word: nothing is tried twice.
    reached, before = _with_skipped(pieces, {0}), ""
    for character in word:
        is_first = before in ("", "/", "=")
        reached = _with_skipped(
            pieces,
            {
                at + (not _is_star(pieces[at]))
                for at in reached
                if at < len(pieces) and _takes(pieces[at], character, is_first)
            },
        )
        before = character
    return len(pieces) in reached


def has_wildcard(glob: str) -> bool:
    return any(_is_wild(piece) for piece in _PIECE.findall(glob))


def _is_wild(piece: str) -> bool:
    return piece == "?" or _is_star(piece) or len(piece) > 1


def _is_star(piece: str) -> bool:
    return piece.startswith("*")


def _with_skipped(pieces: list[str], reached: Iterable[int]) -> set[int]:
    """*reached*, and what is behind a star there, which may also stand for nothing."""
    found = set(reached)
    for at, piece in enumerate(pieces):
        if at in found and _is_star(piece):
            found.add(at + 1)
    return found


def _takes(piece: str, character: str, is_first: bool) -> bool:
    if not _is_wild(piece):
        return piece == character
    if piece.startswith("**"):
        return True
    if not character.isprintable() or character in "/:" or (is_first and character in ".-"):
        return False
    return fnmatchcase(character, piece)
