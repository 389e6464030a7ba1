"""What an app answers, as bytes of HTTP/1.1: whole, in pieces, or that there is no answer.

Nothing is written that could be read in another way than it is meant: headers that would end early,
lengths that are not kept. Owns no socket and no task.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from .asgi import INVALID_REQUEST, Refused
from .requests import LENGTH, REASONS, RequestHead

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
INTERNAL_ERROR = -32603
"""Of JSON-RPC."""

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_STATUS = {
    status: f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\n".encode()
    for status in range(200, 600)
}
_OURS = {b"connection", b"transfer-encoding", b"date"}
"""Headers that no app has to give."""


class BadAnswer(Exception):
    """What an app says is no answer that could be written; says why."""


class Answer:
    """One answer, from what an app says of it to its bytes; its length is what it says it is."""

    def __init__(self, request: RequestHead) -> None:
        self.is_last = request.is_last
        """The connection is closed behind it. To be set before the first piece, if at all."""
        self.has_begun = False
        self.is_complete = False
        self._is_head = request.method == "HEAD"
        self._may_chunk = request.version == "1.1"
        self._lines: list[bytes] = []
        self._status = 0
        self._left: int | None = None
        """Bytes of its body that are to come, where that was said."""
        self._in_chunks = False

    def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Nothing is to be written before the first piece.

        Raises:
            BadAnswer: it would not be read as what it is.
        """
        if self._lines or status not in _STATUS:
            raise BadAnswer(f"no answer begins with the status {status} here")
        self._status = status
        lines = [_STATUS[status]]
        for name, value in headers:
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
                raise BadAnswer(f"its header {name!r} cannot be written")
            kind = name.lower()
            if kind == b"content-length":
                if self._left is not None or not LENGTH.fullmatch(value):
                    raise BadAnswer("its length is ambiguous")
                self._left = int(value)
                if status == HTTPStatus.NO_CONTENT:
                    continue
            elif kind in _OURS:
                continue
            lines.append(b"%s: %s\r\n" % (name, value))
        self._lines = lines

    def piece(self, body: bytes, *, more: bool) -> bytes:
        """The next part of it as it is written, with the head if it is the first.

        Raises:
            BadAnswer: it cannot be part of what has begun.
        """
        if not self._lines or self.is_complete:
            raise BadAnswer("a body comes behind a head, and nothing behind the last of it")
        if not self.has_begun and self._left is None:
            self._delimit(len(body), more)
        if self._left is not None and not self._is_head:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more and self._has_body):
                raise BadAnswer("it is not as long as it says")
        if self._is_head or not self._has_body:
            written = b""
        elif not self._in_chunks:
            written = body
        else:
            written = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            if not more:
                written += b"0\r\n\r\n"
        if not self.has_begun:
            self.has_begun = True
            if self.is_last:
                self._lines.append(b"connection: close\r\n")
            written = b"%bdate: %b\r\n\r\n%b" % (b"".join(self._lines), _now(), written)
        self.is_complete = not more
        return written

    @property
    def _has_body(self) -> bool:
        return self._status not in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}

    def _delimit(self, size: int, more: bool) -> None:
        """Say how its end will be known."""
        if not self._has_body:
            self._left = 0
        elif not more:
            if not self._is_head:
                self._left = size
                self._lines.append(b"content-length: %d\r\n" % size)
        elif self._may_chunk:
            self._in_chunks = True
            self._lines.append(b"transfer-encoding: chunked\r\n")
        else:
            self.is_last = True


def refusal(status: int, *headers: bytes, is_head: bool = False) -> bytes:
    """A whole answer that says what is wrong, as JSON-RPC; the last of its connection."""
    code = INTERNAL_ERROR if status == HTTPStatus.INTERNAL_SERVER_ERROR else INVALID_REQUEST
    body = json.dumps(Refused(status, REASONS[status], code=code).body).encode()
    lines = (
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
        b"date: %b" % _now(),
        *headers,
    )
    head = _STATUS[status] + b"\r\n".join((*lines, b"", b""))
    return head if is_head else head + body


def _now() -> bytes:
    return _date(int(time.time()))


@lru_cache(1)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()
