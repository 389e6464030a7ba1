"""Bugs that could be in the package, each with the tests that would catch it.

What a bug is: a piece of source that is in its file exactly once, and what would stand there. How
they are planted: `../planting.py`.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class Mutant:
    bug: str
    file: str
    """In the package."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Files, or tests of them, in the folder of all tests; quick ones that should fail of it."""
    also: tuple[tuple[str, str, str], ...] = ()
    """File, piece and what would stand there: of what else would have to be missing."""

    def pieces(self) -> tuple[tuple[str, str, str], ...]:
        return ((self.file, self.old, self.new), *self.also)


def mutant(
    bug: str,
    file: str,
    old: str,
    new: str,
    *tests: str,
    also: tuple[tuple[str, str, str], ...] = (),
) -> Mutant:
    return Mutant(bug, file, old, new, tests, also)
