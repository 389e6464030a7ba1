"""Regular expressions of peers: those that can be compiled, and matched, within a bound. Pure.

The library writes out what is to be repeated so many times at least, before it has matched anything
and where no timeout reaches it: ``a{100000000}`` takes half a minute, and some gigabytes.
"""

from __future__ import annotations

import re

import regex

MOST_REPEATED = 5000
"""What a pattern may repeat at least, all in all: about 10 ms to compile."""

_TOKEN = re.compile(
    r"\\[pP]\{\^?[\w=: -]+\}|\\."
    r"|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*+\]"
    r"|\{\d*,?\d*\}"
    r"|(?P<stray>\{)|.",
    re.DOTALL,
)
"""What is escaped, a set of characters, a repetition, a brace that is none of these; else one."""
_REPEATED = re.compile(r"(.)\{(\d+)", re.DOTALL)
_VERBOSE = re.compile(r"\(\?[A-Za-z0-9]*x")


class NoPattern(ValueError):
    """It is none that is taken; says why."""


class Explosive(NoPattern):
    """It may be one, but there is no telling how long it takes."""


def compiled(pattern: str, flags: int = 0) -> regex.Pattern[str]:
    """Raises `NoPattern`."""
    # In a set such a repetition is none, and is counted all the same: who writes the one may have
    # us believe that it is the other.
    for token in _TOKEN.finditer(pattern):
        if token.lastgroup == "stray":
            # The library would look for what is only like it, without an end.
            raise Explosive("a brace that is no repetition; write \\{")
        if token[0] == "(" and _VERBOSE.match(pattern, token.start()):
            raise Explosive("(?x) is not taken; write it without blanks and comments")
    if _repeated(pattern) > MOST_REPEATED:
        raise Explosive(f"it repeats more than {MOST_REPEATED} things; write smaller numbers")
    try:
        return regex.compile(pattern, flags)
    except (regex.error, ValueError, RecursionError) as error:
        raise NoPattern(str(error) or type(error).__name__) from None


def _repeated(pattern: str) -> int:
    """How much is written out of it, at most: a group may have others in it, which multiply."""
    once, times = len(pattern), 1
    for before, digits in _REPEATED.findall(pattern):
        number = int(digits[:10])
        if before == ")":
            times *= max(number, 1)
        else:
            once += number
    return once * times if times > 1 or once > len(pattern) else 0
