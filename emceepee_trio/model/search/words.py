"""Terms of a text: what two texts have in common if they are about the same.

Names are taken apart (``readTextFile``, ``read_text_file``), words lose their endings, accents and
case; in scripts that put nothing between words each two neighbours are a term. Knows no language:
the endings are those of the one that a script is mostly written in.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

import regex
import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]  # has no types

LONGEST = 40
"""Characters of a word; what is longer is no word, and its beginning stands for it."""

MOST_APART = 3
"""Characters for each of a text that are looked at: there is one that stands for eighteen."""

_RUN = regex.compile(
    r"(?P<dense>[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー]+)"
    r"|\p{N}++"
    r"|\p{Lu}+(?!\p{Ll})"
    r"|\p{Lu}?[\p{Ll}\p{Lo}\p{Lm}\p{Lt}\p{M}]++"
    r"|\p{Lu}"
)
"""A dense one has no gaps between words; of all others, ``HTTPServer2`` has three."""
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_MARKS = regex.compile(r"(\p{M}{30})\p{M}++")
"""More of them than a letter has in any script. What brings them into order is quadratic."""

_ENDINGS: Mapping[str, str] = {
    "LATIN": "english",
    "CYRILLIC": "russian",
    "GREEK": "greek",
    "ARABIC": "arabic",
    "ARMENIAN": "armenian",
    "DEVANAGARI": "hindi",
    "TAMIL": "tamil",
}
"""By script: whose endings words lose."""

_EMPTY = """
a about all an and any are as at be been but by can could do does each for from had has have how i
if in into is it its me must my of on or our please should some such than that the their them then
there these they this those to up use used user uses using via was we were what when where which
who will with within would you your
"""
EMPTY = frozenset(_EMPTY.split())
"""Words that say nothing of what a tool does."""


@lru_cache(maxsize=len(_ENDINGS))
def _stemmer(language: str) -> Any:
    return Stemmer.Stemmer(language, 0)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """Of a folded word of one script."""
    if len(word) < 3 or word.isdecimal():
        return word
    script, _, _ = unicodedata.name(word[0], "").partition(" ")
    if (language := _ENDINGS.get(script)) is None:
        return word
    stemmed: str = _stemmer(language).stemWord(word)
    return stemmed


def folded(text: str) -> str:
    """Without accents, each sign as what it stands for; case is left."""
    if text.isascii():
        return text
    bare, letter = list[str](), ""
    apart = unicodedata.normalize("NFKD", _MARKS.sub(r"\1", text))
    for each in islice(apart, MOST_APART * len(text)):
        if not unicodedata.combining(each):
            letter = each
        if unicodedata.category(each) != "Mn" or not _is_latin(letter):
            bare.append(each)
    return unicodedata.normalize("NFKC", "".join(bare))


def _is_latin(letter: str) -> bool:
    """Whether it could do without a mark; in other scripts marks are vowels."""
    return "\u0041" <= letter <= "\u024f" or "\u0370" <= letter <= "\u03ff"


def parts(text: str) -> Iterator[list[str]]:
    """Of each word of *text* its parts, folded, with endings."""
    for word in _WORD.findall(folded(text)):
        found: list[str] = []
        for run in _RUN.finditer(word):
            said = run[0].casefold()
            if run["dense"] is None:
                found.append(said[:LONGEST])
            elif len(said) == 1:
                found.append(said)
            else:
                found += [said[at : at + 2] for at in range(len(said) - 1)]
        if found:
            yield found


def terms(text: str) -> list[str]:
    """Of prose, in its order."""
    return [stem(part) for word in parts(text) for part in word if part not in EMPTY]


def terms_of_name(text: str) -> list[str]:
    """Of a name: what is written together as often as not (``side_bar``) is there as one, too."""
    found = [part for word in parts(text) for part in word]
    kept = [stem(part) for part in found if part not in EMPTY]
    return kept + [stem(pair) for pair in joined(found)]


def joined(found: Sequence[str]) -> list[str]:
    """Of any two neighbours, both of letters without accents or of digits."""
    return [a + b for a, b in pairwise(found) if a.isascii() and b.isascii()]


def squeezed(text: str) -> str:
    """What is left of a name without case and what separates its words."""
    return "".join(_WORD.findall(folded(text))).casefold()
