"""Lines of a kept text in which a pattern is found. In a thread, and it ends by itself.

A literal that every match begins with is looked for first, by the C library, which is many times as
fast. Patterns see one block of whole lines at a time; none is in memory longer than that.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import attrs
import regex

from ...errors import InvalidArguments
from ...model.text.patterns import NoPattern, compiled
from ...session.kept import Kept

BLOCK = 1024 * 1024
"""Bytes that are searched at once; a line is searched in parts of four of them, if it is longer."""
SCAN = 256 * 1024
"""Bytes in which a literal is looked for at once, so many that a processor has them at hand."""
EFFORT = 2.0
"""Seconds of CPU that one search may take."""
COUNTED = 10_000
"""Matches that are found and counted."""
LINE = 500
"""Characters of a line that are shown."""

_LITERAL = re.compile(r"[\w \-:/=\"'<>@%&,;!~`]+", re.ASCII)


@attrs.define(eq=False)
class Matches:
    lines: list[tuple[int, str]] = attrs.field(factory=list)
    """Numbers and what is shown, of those for which there is room."""
    matches: int = 0
    """Matches that were found, shown or not."""
    is_complete: bool = True
    until: int = 0
    """The offset to which it was looked for, if not to the end."""


@attrs.frozen
class Grep:
    text: regex.Pattern[str]
    ascii: regex.Pattern[bytes] | None
    literal: bytes
    """What a match begins with, if that is known."""
    is_literal: bool
    """Whether that is all of it."""

    @classmethod
    def of(cls, pattern: str) -> Grep:
        """Raises `InvalidArguments` if it is none."""
        try:
            in_text = compiled(pattern, regex.MULTILINE)
        except NoPattern as error:
            raise InvalidArguments(
                f"grep: not a regular expression: {error}; put a backslash before what is meant "
                "as it is"
            ) from None
        in_ascii = None
        with suppress(ValueError):  # (?u) is for texts alone
            if pattern.isascii():
                in_ascii = regex.compile(pattern.encode(), regex.MULTILINE)
        begins = _LITERAL.match(pattern)
        literal = begins[0] if begins and "|" not in pattern else ""
        is_literal = len(literal) == len(pattern)
        if not is_literal and pattern[len(literal) : len(literal) + 1] in ("*", "?", "{"):
            literal = literal[:-1]
        return cls(in_text, in_ascii, literal.encode(), is_literal)

    def among(self, kept: Kept, start: int, end: int, room: int) -> Matches:
        """Those between two offsets at which lines begin, with *room* for so many bytes."""
        found, clock = Matches(), time.thread_time() + EFFORT
        try:
            for base, block in self._blocks(kept, start, end, found, clock):
                found.until = base
                room = self._in_block(kept, base, block, found, room, clock)
        except TimeoutError:
            found.is_complete = False
        return found

    def _blocks(
        self, kept: Kept, start: int, end: int, found: Matches, clock: float
    ) -> Iterator[tuple[int, bytes]]:
        """Those that may have a match."""
        if not self.literal:
            yield from _blocks(kept, start, end)
            return
        begin = start
        while (at := self._next(kept, begin, end, found, clock)) >= 0:
            base = max(begin, _line_before(kept, at))
            block = next(block for _, block in _blocks(kept, base, end))
            yield base, block
            begin = base + len(block)

    def _next(self, kept: Kept, at: int, end: int, found: Matches, clock: float) -> int:
        """Where the literal is next, or -1."""
        while at < end:
            found.until = at
            if time.thread_time() > clock:
                raise TimeoutError
            piece = kept.read(at, min(end, at + SCAN))
            if (first := _find(piece, self.literal)) >= 0:
                return at + first
            if at + len(piece) >= end or len(piece) < SCAN:  # all, or all that is left of it
                return -1
            at += len(piece) - len(self.literal) + 1
        return -1

    def _in_block(
        self, kept: Kept, base: int, block: bytes, found: Matches, room: int, clock: float
    ) -> int:
        subject: Any = block
        pattern: Any = self.ascii
        if pattern is None or not block.isascii():
            subject, pattern = block.decode("utf-8", "replace"), self.text
        end_of_line: Any = "\n" if isinstance(subject, str) else b"\n"
        number, counted, at = kept.line_at(base), 0, 0
        while (match := _search(pattern, subject, at, clock)) is not None:
            first = subject.rfind(end_of_line, 0, match.start()) + 1
            last = subject.find(end_of_line, match.start())
            last = len(subject) if last < 0 else last
            found.matches += 1
            if found.matches >= COUNTED:
                found.is_complete = False
                raise TimeoutError
            number += subject.count(end_of_line, counted, first)
            counted = first
            if room > 0:
                said = _shown(subject, first, last, match.start(), base)
                if (room := room - len(said.encode("utf-8", "replace")) - 12) >= 0:
                    found.lines.append((number, said))
            at = last + 1
        return room


def _search(pattern: Any, subject: Any, at: int, clock: float) -> Any:
    if at > len(subject) or (at == len(subject) and at):
        return None
    while (left := clock - time.thread_time()) > 0:
        try:
            return pattern.search(subject, at, timeout=left, concurrent=True)
        except TimeoutError:
            pass  # on a busy machine that is not yet its own time
    raise TimeoutError


def _line_before(kept: Kept, at: int) -> int:
    """Where the line begins that has that byte; of a long one, somewhere in it."""
    start = max(0, at - BLOCK)
    return start + kept.read(start, at).rfind(b"\n") + 1


def _of_libc() -> Callable[..., int | None] | None:
    try:
        memmem = ctypes.CDLL(None).memmem
    except (OSError, AttributeError):  # it is in no standard
        return None
    memmem.restype = ctypes.c_void_p
    memmem.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    found: Callable[..., int | None] = memmem
    return found


_MEMMEM = _of_libc()


def _find(piece: bytes, literal: bytes) -> int:
    """As ``piece.find(literal)``, in half of the time, and without the interpreter."""
    if _MEMMEM is None:
        return piece.find(literal)
    start = ctypes.cast(ctypes.c_char_p(piece), ctypes.c_void_p)
    at = _MEMMEM(start, len(piece), literal, len(literal))
    return -1 if at is None else at - (start.value or 0)


def _shown(subject: Any, first: int, last: int, at: int, base: int) -> str:
    if last - first <= LINE:
        line = subject[first:last]
        return line if isinstance(line, str) else line.decode()
    start, end = max(first, at - LINE // 4), min(last, at + 3 * LINE // 4)
    line, before = subject[start:end], subject[:at]
    if isinstance(line, bytes):
        offset, line = base + len(before), line.decode()
    else:
        offset = base + len(before.encode("utf-8", "replace"))
    return f"(byte {offset}) {'…' * (start > first)}{line}{'…' * (end < last)}"


def _blocks(kept: Kept, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines, and where they begin."""
    rest = b""
    while start < end:
        block = rest + kept.read(start + len(rest), min(end, start + len(rest) + BLOCK))
        if start + len(block) >= end or len(block) == len(rest):
            yield start, block
            return
        cut = block.rfind(b"\n") + 1
        if not cut and len(block) < 4 * BLOCK:
            rest = block
            continue
        cut = cut or len(block)
        yield start, block[:cut]
        start, rest = start + cut, block[cut:]
