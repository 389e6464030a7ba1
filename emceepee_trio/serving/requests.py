"""HTTP/1.1 as a peer sends it: bytes become requests.

Heads and chunks are read by llhttp, with none of its leniencies, and what it takes although it may
be read in two ways is refused here: a proxy in front of us may have read it in the other one, and
takes what we find behind its end for somebody else's. Owns no socket and no task, and waits for
nothing; `connection.py` does.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import attrs
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from .asgi import Scope

MAX_HEAD = 32 * 1024
"""Bytes of a request's target and headers together; more is answered with 431."""
MAX_HEADERS = 4096
"""Of a request; likewise. Each takes its time, here and with whoever looks for one."""
LONGEST = MAX_HEAD + 4 * MAX_HEADERS
"""Bytes of a head as it is written, and of what surrounds the chunks of a body, in a row."""
LENGTH = re.compile(rb"[0-9]{1,18}")
"""What a Content-Length has to be."""

REASONS = {
    400: "the request is not HTTP/1.1 as it should be",
    408: "the request did not arrive in time",
    431: f"the request's headers are too long together (limit {MAX_HEAD} bytes) or too many"
    f" (limit {MAX_HEADERS})",
    500: "there is no answer that could be written",
    501: "only chunked transfer-encoding is understood",
    503: "all connections are being served; come again in a second",
    505: "only HTTP/1.1 is spoken, and HTTP/1.0",
}
_BLANK = b"\r\n\r\n"
_BEGUN = re.compile(rb"\r(?:\n\r?)?\Z")
"""Of a blank line."""
_EMPTY_LINES = re.compile(rb"(?:\r\n)*")
_CHUNKS = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
_CODINGS = re.compile(rb"^transfer-encoding:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_READ = {b"host", b"content-length", b"transfer-encoding", b"connection", b"expect"}
"""Headers that say something to us, and not only to the app."""


class BadRequest(Exception):
    """What came is no request that could be served, and nothing behind it is one any more."""

    def __init__(self, status: int) -> None:
        super().__init__(REASONS[status])
        self.status = status


@attrs.define(eq=False)
class RequestHead:
    """A head that was read to its end, and can be read in one way only."""

    method: str
    target: bytes
    version: str
    headers: list[tuple[bytes, bytes]]
    """Names in lower case."""
    length: int | None = 0
    """Of its body; None if that comes in chunks."""
    is_last: bool = False
    """Its peer wants nothing else."""
    expects: bool = False
    """Its peer waits to be asked for the body."""

    def scope(self, client: tuple[str, int] | None, server: tuple[str, int] | None) -> Scope:
        """As ASGI has it."""
        path, _, query = self.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "http_version": self.version,
            "method": self.method,
            "scheme": "http",
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": self.headers,
            "client": client,
            "server": server,
            "state": {},
            "extensions": {},
        }


class _Head:
    """What llhttp finds in one."""

    def __init__(self) -> None:
        self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_whole = False

    def on_url(self, target: bytes) -> None:
        self.target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.rstrip(b" \t")))
        if len(self.headers) > MAX_HEADERS:
            raise BadRequest(431)  # which ends the parser, too

    def on_headers_complete(self) -> None:
        self.is_whole = True


class _Chunks:
    """And in a body. Trailers are not looked at."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.is_whole = False

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.is_whole = True


class Requests:
    """What one peer sends: what has come and is not understood yet, and what it is a part of.

    After each head, :meth:`body` until :attr:`is_whole`; then the next one.
    """

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        """Where what is not understood begins."""
        self._fed = 0
        """What is before that, llhttp has seen."""
        self.is_head = False
        """The last request, as far as it has come, is a HEAD: what answers it has no body."""
        self._parser: HttpRequestParser | None = None
        self._head = _Head()
        self._chunks: _Chunks | None = None
        self._left = 0
        """Bytes of a body that is no chunks."""
        self._between = 0
        """Bytes since the last that were part of a body of chunks."""

    @property
    def is_whole(self) -> bool:
        """Nothing is to come of the request that was the last."""
        return not self._left and self._chunks is None

    @property
    def waiting(self) -> int:
        """Bytes that have come and are not understood yet, or not wanted."""
        return len(self._data) - self._at

    def feed(self, data: bytes) -> None:
        if self.waiting:
            data = self._data[self._at :] + data
            self._fed -= self._at
        else:
            self._fed = 0
        self._data, self._at = data, 0

    def next(self) -> RequestHead | None:
        """The next one, once its head is whole.

        Raises:
            BadRequest: it is none.
        """
        if self._fed == self._at:
            self._skip_empty_lines()
        if not self.waiting:
            self._data, self._at, self._fed = b"", 0, 0
            return None
        parser = self._parser = self._parser or HttpRequestParser(self._head)
        while not self._head.is_whole:
            if self._fed == (end := self._piece()):
                return None
            self._read_head(parser, end)
        request = _request(parser, self._head, self._data[self._at : self._fed])
        self._at, self._parser, self._head = self._fed, None, _Head()
        if request.length is None:
            self._chunks, self._between = _Chunks(), 0
            self._parser = HttpRequestParser(self._chunks)
            self._parser.feed_data(_CHUNKS)
        else:
            self._left = request.length
        return request

    def _skip_empty_lines(self) -> None:
        """As whoever reads requests should; llhttp takes others for such, too."""
        found = _EMPTY_LINES.match(self._data, self._at)
        assert found is not None
        self._at = self._fed = found.end()

    def _read_head(self, parser: HttpRequestParser, end: int) -> None:
        """More of it, up to *end*."""
        longest = self._at + LONGEST
        try:
            parser.feed_data(self._data[self._fed : min(end, longest)])
        except HttpParserUpgrade:
            pass  # none is offered; what follows is its body, which llhttp would leave out
        except HttpParserError:
            if len(self._head.headers) > MAX_HEADERS:
                raise BadRequest(431) from None
            raise BadRequest(501 if self._is_coded(end) else 400) from None
        finally:
            self.is_head = parser.get_method() == b"HEAD"
        if end > longest:
            raise BadRequest(431)
        self._fed = end
        if not self._head.is_whole and self._data.endswith(_BLANK, self._at, end):
            raise BadRequest(400)  # a head to us, and to llhttp a part of one

    def _is_coded(self, end: int) -> bool:
        """Whether what is no request up to *end* has codings of which we do not know each."""
        codings = _CODINGS.findall(self._data, self._at, end)
        has_length = any(name == b"content-length" for name, _ in self._head.headers)
        is_known = [each.rstrip().lower() for each in codings] == [b"chunked"]
        return bool(codings) and not has_length and not is_known

    def body(self) -> bytes:
        """What has come of it since the last time.

        Raises:
            BadRequest: its chunks are none.
        """
        if self._chunks is not None:
            return self._unchunked(self._chunks)
        end = min(self._at + self._left, len(self._data))
        part = self._data[self._at : end]
        self._left -= len(part)
        self._at = self._fed = end
        return part

    def _unchunked(self, chunks: _Chunks) -> bytes:
        assert self._parser is not None
        data = memoryview(self._data)
        while not chunks.is_whole and self._at < (end := self._piece()):
            seen = len(chunks.parts)
            try:
                self._parser.feed_data(data[self._at : end])
            except HttpParserError:
                raise BadRequest(400) from None
            self._between = 0 if len(chunks.parts) > seen else self._between + end - self._at
            if self._between > LONGEST:
                raise BadRequest(431)
            self._at = self._fed = end
        if chunks.is_whole:
            self._parser = self._chunks = None
        body, chunks.parts = b"".join(chunks.parts), []
        return body

    def _piece(self) -> int:
        """Up to where llhttp may look: with a blank line a head ends, and so does the last chunk.

        It does not tell where it was when it found the end of something. So it is given nothing
        behind a blank line before what is in front of it is understood; and, since one may come in
        parts, nothing of what may be the beginning of one.
        """
        end = self._data.find(_BLANK, self._fed)
        if end >= 0:
            return end + len(_BLANK)
        begun = _BEGUN.search(self._data, max(self._fed, len(self._data) - 3))
        return begun.start() if begun else len(self._data)


def _request(parser: HttpRequestParser, head: _Head, raw: bytes) -> RequestHead:
    method, version, headers = parser.get_method(), parser.get_http_version(), head.headers
    request = RequestHead(method.decode(), head.target, version, headers)
    # llhttp takes several spaces, no version at all, and that of protocols of others.
    line = b"%b %b HTTP/%b\r\n" % (method, head.target, version.encode())
    # Whoever is asked by another form than a path is a proxy; and a fragment is nobody's business.
    if (
        not raw.startswith(line)
        or not head.target.startswith(b"/")
        or b"#" in head.target
        or method == b"CONNECT"
    ):
        raise BadRequest(400)
    if version not in {"1.0", "1.1"}:
        raise BadRequest(505)
    size = len(raw)
    if size > MAX_HEAD:
        size = len(head.target) + sum(len(name) + len(value) for name, value in headers)
    if size > MAX_HEAD:
        raise BadRequest(431)
    is_old = version == "1.0"
    request.is_last, hosts = is_old, 0
    for name, value in headers:
        if name not in _READ:
            continue
        match name:
            case b"host":
                hosts += 1
            case b"content-length":
                if not LENGTH.fullmatch(value):
                    raise BadRequest(400)
                request.length = int(value)
            case b"transfer-encoding":
                if value.lower() != b"chunked":
                    raise BadRequest(501)
                request.length = None
            case b"connection":
                request.is_last |= b"close" in value.lower()
            case b"expect":
                request.expects = not is_old and value.lower() == b"100-continue"
    if hosts > 1 or not (hosts or is_old) or (is_old and request.length is None):
        raise BadRequest(400)
    return request
