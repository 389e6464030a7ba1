"""How the URL and the words of a server are shown: without secrets, and variables by their names.

What a variable stands for may be a secret wherever it stands, in the path of a URL too; so may be
what is written beside one, and what it has in its place by default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from ..model.json.problems import Expanded
from ..model.text.redact import HIDDEN, LONGEST, command_line, redact_url, redact_words

_REFERENCE = r"(?<!\$)\$\{(?:env:)?[a-z_]\w*"
_DEFAULT = re.compile(rf"({_REFERENCE}:-)[^}}]+", re.ASCII | re.IGNORECASE)
_HARMLESS = re.compile(
    r"(?:--?[a-z][a-z-]*=)?(?:authorization:\s*)?(?:(?:bearer|basic|token)\s+)?"
    rf"(?:{_REFERENCE}(?::-(?:\*\*\*)?)?\}}[\s:/@.,-]*)+",
    re.ASCII | re.IGNORECASE,
)
"""Variables, and what is no secret beside them."""
_PORT = re.compile(r"(://[^/?#\s]*):(?=\$\{[^}]*\}(?:[/?#]|\Z))")
_COLON = "\ue000"
"""In place of one that would begin a port, which cannot be a variable to who reads a URL."""


def seen_url(url: str, of_somebody: str = "") -> str:
    """Without its user, in whose place *of_somebody* stands."""
    redacted, is_somebodys = _nobodys(url, of_somebody)
    written, still = _nobodys(_written(url), of_somebody)
    # Else a variable has the end of the user in it, and what is before it would be shown.
    return seen(url, redacted, _plain(written) if still or not is_somebodys else HIDDEN)


def seen_command(words: Sequence[str]) -> str:
    return command_line(seen_words(words))


def seen_words(words: Sequence[str]) -> Iterator[str]:
    """Those of a command line, each as it is shown. Lazy."""
    redacted, written = redact_words(words), redact_words(map(_written, words))
    for word, said, each in zip(words, redacted, written, strict=True):
        # One that is hidden for the one before it stays so, whatever either was made of.
        yield seen(word, said, HIDDEN if said == HIDDEN else _plain(each))


def seen(value: str, redacted: str, written: str) -> str:
    """*redacted*, if it was not made of variables, and else *written*, which is so as well."""
    if not isinstance(value, Expanded):
        return redacted
    if len(value.written) > LONGEST:
        return HIDDEN
    said = _plain(_written(value))
    return said if _HARMLESS.fullmatch(said) else written


def _written(value: str) -> str:
    """Without the defaults of variables, for what redacts it."""
    if not isinstance(value, Expanded):
        return value
    said = _DEFAULT.sub(rf"\1{HIDDEN}", value.written)
    said = re.sub(r"\$\{[^}]*", lambda found: found[0].replace(":", _COLON), said)
    return _PORT.sub(rf"\1{_COLON}", said)


def _plain(said: str) -> str:
    return said.replace(_COLON, ":")


def _nobodys(url: str, of_somebody: str) -> tuple[str, bool]:
    """Redacted, and whether somebody is named in it."""
    shown = redact_url(url)
    is_somebodys = shown != HIDDEN and "@" in urlsplit(url).netloc
    return shown.replace("://", f"://{of_somebody}", 1) if is_somebodys else shown, is_somebodys
