"""Which names a list of names and globs allows. Pure.

The list is a client's, the names are a server's, and each of these is compared with all of that.
So plain names are looked up, and a glob is matched in a time in proportion to the name: what
`fnmatch` makes of ``*`` never goes back behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

import attrs

_MAGIC = re.compile(r"[*?\[]")

LONGEST = 500
"""Characters of a name that a glob may match."""


def is_glob(pattern: str) -> bool:
    return _MAGIC.search(pattern) is not None


def _names(patterns: tuple[str, ...]) -> frozenset[str]:
    return frozenset(each for each in patterns if not is_glob(each))


def _globs(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(translate(each)) for each in dict.fromkeys(patterns) if is_glob(each))


@attrs.frozen
class AllowedNames:
    """As `fnmatch.fnmatchcase` would have it, for any of them; compiled once."""

    names: frozenset[str] = attrs.field(converter=_names)
    globs: tuple[re.Pattern[str], ...] = attrs.field(converter=_globs)

    @classmethod
    def of(cls, patterns: Iterable[str]) -> AllowedNames:
        given = tuple(patterns)
        return cls(given, given)

    def may_have(self, name: str) -> bool:
        """The same, and of a name that is too long for globs that it might be meant by one."""
        return name in self or (len(name) > LONGEST and bool(self.globs))

    def __contains__(self, name: str) -> bool:
        if name in self.names:
            return True
        return len(name) <= LONGEST and any(each.match(name) for each in self.globs)
