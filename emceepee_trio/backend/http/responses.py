"""HTTP/1.1 as a server sends it: bytes become the response to one request.

Read by llhttp, with those of its leniencies that h11 has, too: bare line feeds, a length beside
chunks, spaces behind the size of one. Whoever lies with them lies to one connection of ours, which
is nobody else's. Owns no socket and waits for nothing; `channels.py` does.
"""

from __future__ import annotations

import httpx2
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

LONGEST = 100 * 1024
"""Bytes of a head, and of what surrounds the chunks of a body, in a row."""
_NO_BODY = {204, 304}


class BadResponse(httpx2.RemoteProtocolError):
    """What came is no response, and nothing behind it is one any more."""


class ResponseReader:
    """Of one response: first :attr:`is_headed`, then :meth:`body` until :attr:`is_whole`."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        """Names in lower case."""
        self.is_headed = False
        self.is_whole = False
        self.goes_on = False
        """The same connection can be asked for something else."""
        self._parts: list[bytes] = []
        self._until_end = False
        """The body is all that comes."""
        self._between = 0
        """Bytes since the last that were part of the body, or the end of a head."""
        self._refused: str | None = None
        self._parser = parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes) -> None:
        """
        Raises:
            BadResponse: it is none.
        """
        self._between += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._refused = "the server switched to a protocol that it was not asked for"
        except HttpParserError as error:
            if not self.is_whole:
                raise BadResponse(f"not HTTP/1.1 as it should be: {error}") from None
            self.goes_on = False  # what follows is nobody's answer
        if self._refused is not None:
            raise BadResponse(self._refused)
        if self._between > LONGEST and not self.is_whole:
            raise BadResponse(f"the head of the response is longer than {LONGEST} bytes")

    def end(self) -> None:
        """There is nothing more.

        Raises:
            BadResponse: something is missing.
        """
        if not self.is_headed:
            raise BadResponse("Server disconnected without sending a response.")
        if not self._until_end:
            raise BadResponse("the server closed the connection in the middle of its response")
        self.is_whole = True

    def body(self) -> bytes:
        """What has come of it since the last time."""
        parts = self._parts
        if len(parts) == 1:
            return parts.pop()
        self._parts = []
        return b"".join(parts)

    # What llhttp finds. There may be responses in front of ours (100, 103), and behind it.

    def on_message_begin(self) -> None:
        if self.is_whole:
            self.goes_on = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.is_headed:  # else it is a trailer
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        if self.is_headed:
            return
        self._between = 0
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self.headers.clear()
            return
        if status < 100:
            self._refused = f"the server answered with the status {status}"
        codings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            self._refused = "only chunked transfer-encoding is understood"
        has_length = any(name == b"content-length" for name, _ in self.headers)
        self._until_end = not (codings or has_length or status in _NO_BODY)
        self.status, self.is_headed = status, True

    def on_body(self, part: bytes) -> None:
        if self.is_headed and not self.is_whole:
            self._parts.append(part)
            self._between = 0

    def on_message_complete(self) -> None:
        if self.is_headed and not self.is_whole:
            self.is_whole = True
            self.goes_on = self._parser.should_keep_alive()
