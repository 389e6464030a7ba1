"""About how many tokens a model reads in a text: rather too many than too few.

The numbers fit answers of ours as ``cl100k_base`` counts them; ``benchmarks/search.py`` shows by
how much they are off.
"""

from __future__ import annotations

import regex

_PIECE = regex.compile(
    r"(?P<sign>[^\r\n\p{L}\p{N}])?(?P<letters>\p{Lu}?[a-z\p{Ll}\p{M}]++|\p{Lu}++|[\p{L}\p{M}]++)"
    r"|\p{N}{1,3}"
    r"|(?P<signs> ?[^\s\p{L}\p{N}]++)"
    r"|\s++"
)
"""About what is cut apart before tokens are looked for; and ``readFile`` is two words."""

WORD, SHORT, LETTER = 1.06, 5, 0.05
"""Tokens of a word, and of each letter behind so many."""
INSIDE, QUOTED = 0.44, 0.97
"""Those of one that stands right behind another, or behind a sign that is not often there."""
FOREIGN = 1.1
"""Of a letter, in words that have others than those of ASCII."""
LONG = 6
"""Bytes of a token, where they are most."""
CAUTION = 1.08
"""Some texts have as many more than others like them."""


def tokens(text: str) -> float:
    """Of *text*, which is not long; those of two texts are about those of both.

    No word has more than `LONG` bytes for each of its tokens, so tokens bound bytes as well.
    """
    reckoned = CAUTION * sum(map(_tokens, _PIECE.finditer(text)))
    return max(reckoned, _bytes(text) / LONG)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _tokens(piece: regex.Match[str]) -> float:
    said, sign, letters = piece[0], piece["sign"], piece["letters"]
    if letters is None:
        return 0.5 if piece["signs"] is None else 0.3 + 0.5 * max(0, _bytes(said) - 2)
    if not said.isascii():
        return FOREIGN * len(said)
    total = WORD + LETTER * max(0, len(letters) - SHORT)
    if sign is None:
        return total + INSIDE
    return total if sign in "_ ." else total + QUOTED
