"""Patterns of clients, searched for in names of servers.

A pattern can take for ever, a list has any number of names, and the two multiply. So one search has
an effort that all names share; it is made in a thread that leaves the others alone while it
matches; and there is one such search at a time, for which sessions queue, each once. Words and
anchors, which most patterns are, take no time to speak of and need none of this.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial

import attrs
import regex

from ...backend.connections.turns import Turns
from ...errors import InvalidArguments
from ...model.text.patterns import NoPattern, compiled
from ...session.session import Session
from ...waits.matching import in_thread

EFFORT = 0.25
"""Seconds of CPU that one search may take."""

NAME = 500
"""Characters of a name that are searched."""

_PLAIN = re.compile(r"\^?[\w -]*+(?:\.\*)?\$?")


@attrs.frozen
class Search:
    pattern: regex.Pattern[str]

    @classmethod
    def of(cls, name: str, pattern: str) -> Search:
        """Of the argument *name*.

        Raises:
            InvalidArguments: it is no pattern.
        """
        try:
            return cls(compiled(pattern))
        except NoPattern as error:
            raise InvalidArguments(f"{name}: not a regular expression: {error}") from None

    @property
    def is_quick(self) -> bool:
        return _PLAIN.fullmatch(self.pattern.pattern) is not None

    async def among(self, session: Session, names: Sequence[str]) -> list[bool]:
        """Whether it is found in each of *names*.

        Raises:
            InvalidArguments: it takes too long.
        """
        if self.is_quick:
            found: list[bool] = []
            async with Turns() as turns:
                for name in names:
                    if turns.is_over:
                        await turns.next()
                    found.append(self.pattern.search(name[:NAME]) is not None)
            return found
        async with session.matching:
            return await in_thread(partial(self._search, names))

    def _search(self, names: Sequence[str]) -> list[bool]:
        end = time.thread_time() + EFFORT
        return [self._is_in(name[:NAME], end) for name in names]

    def _is_in(self, name: str, end: float) -> bool:
        while (left := end - time.thread_time()) > 0:
            try:
                return self.pattern.search(name, timeout=left, concurrent=True) is not None
            except TimeoutError:
                pass  # on a busy machine that is not yet its own time
        raise InvalidArguments(
            f"the pattern {self.pattern.pattern!r} takes too long to match; use a simpler one"
        )
