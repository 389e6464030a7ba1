"""Lines of bytes. Knows no pipe, no process, and not what is on them."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

LONG = 64 * 1024
"""Bytes of a line that is not copied as it is complete: it would be there twice."""


@attrs.define(eq=False)
class Lines:
    """Cuts chunks into lines, longer ones into pieces of *most* bytes. Searches each byte once."""

    _most: int
    _open: bytearray = attrs.field(factory=bytearray, init=False)

    def feed(self, chunk: bytes) -> Iterator[bytes | bytearray]:
        *lines, tail = chunk.split(b"\n")
        for line in lines:
            yield from self._extend(line)
            yield self.rest()
        yield from self._extend(tail)

    def rest(self) -> bytes | bytearray:
        line, self._open = self._open, bytearray()
        return bytes(line) if len(line) <= LONG else line

    def _extend(self, part: bytes) -> Iterator[bytes]:
        self._open += part
        while len(self._open) > self._most:
            yield bytes(self._open[: self._most])
            del self._open[: self._most]


def text(line: bytes | bytearray) -> str:
    return line.removesuffix(b"\r").decode(errors="replace")
