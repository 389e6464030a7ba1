"""Server-sent events, cut out of the bytes that come. Pure."""

from __future__ import annotations

from collections.abc import Iterator


class EventReader:
    """Of one stream; remembers what a reader would resume it with."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        """Of the last event that was whole."""
        self._id: str | None = None
        self._line = bytearray()
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The data of each event that is whole now, unless it has none."""
        # Our daemon ends its lines with a line feed alone. Each byte is looked at once.
        *ends, beginning = chunk.split(b"\n")
        for end in ends:
            line = bytes(self._line + end)
            self._line.clear()
            if line:
                self._take(line)
                continue
            data, self._data = b"\n".join(self._data), []
            self.last_id = self._id
            if data:
                yield data
        self._line += beginning

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id":
            self._id = value.decode("latin-1")

    def broke_off(self) -> None:
        """The next chunk is of another response."""
        self._line.clear()
        self._data.clear()
        self._id = self.last_id
