"""Requests that are none, or could be taken for another: what h11, llhttp and we say to each.

The page ``docs/reference/http.rst`` shows them. h11 and llhttp (through httptools, with none of its
leniencies) are asked as they are, without what is built on them.
"""

from __future__ import annotations

import attrs
import h11
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

TAKEN, WAITS, STOPS, REFUSED = "taken", "wants more", "stops behind the head", "refused"


@attrs.frozen
class Malformed:
    what: str
    sent: bytes
    h11: str
    """TAKEN, WAITS, or the status that it hints at."""
    llhttp: str
    """TAKEN, WAITS, STOPS or REFUSED."""
    ours: int
    """The status of our answer; 200 where it is taken as one request, and as one only."""


def _get(line: str | bytes = "GET / HTTP/1.1", *headers: str | bytes) -> bytes:
    lines = (line, "Host: x", *headers, "", "")
    return b"\r\n".join(each.encode() if isinstance(each, str) else each for each in lines)


def _post(*headers: str, body: bytes = b"hello") -> bytes:
    return _get("POST / HTTP/1.1", *headers) + body


CHUNKED = "Transfer-Encoding: chunked"
NONE = b"0\r\n\r\n"


def _chunks(body: bytes) -> bytes:
    return _post(CHUNKED, body=body)


def _as(what: str, sent: bytes, said: str) -> Malformed:
    """*said* are the three, in the order of the fields."""
    by_h11, by_llhttp, ours = said.split("; ")
    return Malformed(what, sent, by_h11, by_llhttp, int(ours))


def asked_h11(sent: bytes) -> str:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(sent)
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                return WAITS
    except h11.RemoteProtocolError as error:
        return str(error.error_status_hint)
    return TAKEN


class _Seen:
    def __init__(self) -> None:
        self.requests = 0

    def on_message_complete(self) -> None:
        self.requests += 1


def asked_llhttp(sent: bytes) -> str:
    seen = _Seen()
    try:
        HttpRequestParser(seen).feed_data(sent)
    except HttpParserUpgrade:
        return STOPS
    except HttpParserError:
        return REFUSED
    return TAKEN if seen.requests else WAITS


CASES = (
    _as(
        "both a Content-Length and chunks",
        _post("Content-Length: 5", CHUNKED, body=NONE),
        "taken; refused; 400",
    ),
    _as(
        "the same, the other way round",
        _post(CHUNKED, "Content-Length: 5", body=NONE),
        "taken; refused; 400",
    ),
    _as(
        "both, and the Content-Length is 0",
        _post("Content-Length: 0", CHUNKED, body=NONE),
        "taken; refused; 400",
    ),
    _as(
        "two Content-Lengths", _post("Content-Length: 5", "Content-Length: 6"), "400; refused; 400"
    ),
    _as(
        "two Content-Lengths that say the same",
        _post("Content-Length: 5", "content-LENGTH: 5"),
        "taken; refused; 400",
    ),
    _as("``Content-Length: 5, 5``", _post("Content-Length: 5, 5"), "taken; refused; 400"),
    _as("``Content-Length: 5,6``", _post("Content-Length: 5,6"), "400; refused; 400"),
    _as("``Content-Length: +5``", _post("Content-Length: +5"), "400; refused; 400"),
    _as("``Content-Length: -5``", _post("Content-Length: -5"), "400; refused; 400"),
    _as("``Content-Length: 0x5``", _post("Content-Length: 0x5"), "400; refused; 400"),
    _as("``Content-Length: 5 5``", _post("Content-Length: 5 5"), "400; refused; 400"),
    _as("``Content-Length: 5_0``", _post("Content-Length: 5_0"), "400; refused; 400"),
    _as("``Content-Length: 5.0``", _post("Content-Length: 5.0"), "400; refused; 400"),
    _as("an empty Content-Length", _post("Content-Length:"), "400; refused; 400"),
    _as("a Content-Length in other digits", _post("Content-Length: ٥"), "400; refused; 400"),
    _as(
        "a Content-Length of 20 digits",
        _post("Content-Length: 99999999999999999999"),
        "wants more; refused; 400",
    ),
    _as(
        "a Content-Length with 5000 zeros in front",
        _post("Content-Length: " + "0" * 5000 + "5"),
        "400; taken; 400",
    ),
    _as(
        "a Content-Length that is folded", _post("Content-Length: 5\r\n , 5"), "taken; refused; 400"
    ),
    _as(
        "``Transfer-Encoding: gzip``",
        _post("Transfer-Encoding: gzip", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding: identity``",
        _post("Transfer-Encoding: identity", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding: gzip, chunked``",
        _post("Transfer-Encoding: gzip, chunked", body=NONE),
        "501; taken; 501",
    ),
    _as(
        "``Transfer-Encoding: chunked, identity``",
        _post("Transfer-Encoding: chunked, identity", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding: chunked, chunked``",
        _post("Transfer-Encoding: chunked, chunked", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding: xchunked``",
        _post("Transfer-Encoding: xchunked", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding: chunkedx``",
        _post("Transfer-Encoding: chunkedx", body=NONE),
        "501; refused; 501",
    ),
    _as(
        '``Transfer-Encoding: "chunked"``',
        _post('Transfer-Encoding: "chunked"', body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding: ,chunked``",
        _post("Transfer-Encoding: ,chunked", body=NONE),
        "501; taken; 501",
    ),
    _as(
        "``Transfer-Encoding: chunked;q=1``",
        _post("Transfer-Encoding: chunked;q=1", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "``Transfer-Encoding`` with a vertical tab",
        _post("Transfer-Encoding: \x0bchunked", body=NONE),
        "400; refused; 501",
    ),
    _as(
        "``Transfer-Encoding : chunked``",
        _post("Transfer-Encoding : chunked", body=NONE),
        "400; refused; 400",
    ),
    _as(
        "``Transfer-Encoding`` that is folded",
        _post("Transfer-Encoding:\r\n chunked", body=NONE),
        "taken; refused; 501",
    ),
    _as(
        "an empty ``Transfer-Encoding``",
        _post("Transfer-Encoding:", body=NONE),
        "501; refused; 501",
    ),
    _as(
        "two of ``Transfer-Encoding: chunked``",
        _post(CHUNKED, CHUNKED, body=NONE),
        "501; refused; 501",
    ),
    _as("chunks in HTTP/1.0", _get("POST / HTTP/1.0", CHUNKED) + NONE, "taken; taken; 400"),
    _as("a chunk size ``0x5``", _chunks(b"0x5\r\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as("a chunk size ``+5``", _chunks(b"+5\r\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as("a chunk size ``-5``", _chunks(b"-5\r\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as("a chunk size ``5_0``", _chunks(b"5_0\r\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as("a chunk size ``g``", _chunks(b"g\r\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as("no chunk size", _chunks(b"\r\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as(
        "a space in front of a chunk size",
        _chunks(b" 5\r\nhello\r\n0\r\n\r\n"),
        "400; refused; 400",
    ),
    _as("a space behind a chunk size", _chunks(b"5 \r\nhello\r\n0\r\n\r\n"), "taken; refused; 400"),
    _as(
        "a chunk size of 17 digits",
        _chunks(b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        "wants more; refused; 400",
    ),
    _as(
        "a chunk size that is 5 modulo 2**64",
        _chunks(b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
        "wants more; refused; 400",
    ),
    _as(
        "a chunk that is longer than it says",
        _chunks(b"5\r\nhello!\r\n0\r\n\r\n"),
        "400; refused; 400",
    ),
    _as(
        "a chunk that is shorter than it says",
        _chunks(b"6\r\nhello\r\n0\r\n\r\n"),
        "400; refused; 400",
    ),
    _as("a chunk without an end of its line", _chunks(b"5\r\nhello0\r\n\r\n"), "400; refused; 400"),
    _as("a chunk size that ends with LF", _chunks(b"5\nhello\r\n0\r\n\r\n"), "400; refused; 400"),
    _as("a chunk that ends with LF", _chunks(b"5\r\nhello\n0\r\n\r\n"), "400; refused; 400"),
    _as("a last chunk that ends with LF", _chunks(b"0\n\n"), "wants more; refused; 400"),
    _as("a chunk extension", _chunks(b"5;a=b\r\nhello\r\n0\r\n\r\n"), "taken; taken; 200"),
    _as(
        "a chunk extension without a name",
        _chunks(b"5;\r\nhello\r\n0\r\n\r\n"),
        "taken; refused; 400",
    ),
    _as(
        "a chunk extension with a NUL",
        _chunks(b"5;a\0\r\nhello\r\n0\r\n\r\n"),
        "taken; refused; 400",
    ),
    _as(
        "a chunk extension with a bare LF",
        _chunks(b"5;a\nb\r\nhello\r\n0\r\n\r\n"),
        "400; refused; 400",
    ),
    _as(
        "a chunk extension with a bare CR",
        _chunks(b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
        "taken; refused; 400",
    ),
    _as(
        "a chunk extension with a line end in quotes",
        _chunks(b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n'),
        "400; refused; 400",
    ),
    _as(
        "a chunk extension of 256 kB",
        _chunks(b"5;" + b"a" * 262144 + b"\r\nhello\r\n0\r\n\r\n"),
        "taken; taken; 431",
    ),
    _as("a trailer", _chunks(b"0\r\nX: y\r\n\r\n"), "taken; taken; 200"),
    _as(
        "a trailer that is a Content-Length",
        _chunks(b"0\r\nContent-Length: 5\r\n\r\n"),
        "taken; refused; 400",
    ),
    _as(
        "a trailer that is a Transfer-Encoding",
        _chunks(b"0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        "taken; refused; 400",
    ),
    _as("a trailer with a space in its name", _chunks(b"0\r\nX y: z\r\n\r\n"), "400; refused; 400"),
    _as("a trailer that ends with LF", _chunks(b"0\r\nX: y\n\r\n"), "taken; refused; 400"),
    _as(
        "trailers of 64 kB", _chunks(b"0\r\n" + b"X: y\r\n" * 11000 + b"\r\n"), "taken; taken; 431"
    ),
    _as("lines that end with LF", b"GET / HTTP/1.1\nHost: x\n\n", "taken; refused; 400"),
    _as("a header that ends with LF", _get("GET / HTTP/1.1", "X: y\nY: z"), "taken; refused; 400"),
    _as("a head that ends with LF", b"GET / HTTP/1.1\r\nHost: x\r\n\n", "taken; refused; 400"),
    _as("lines that end with CR", b"GET / HTTP/1.1\rHost: x\r\r", "wants more; refused; 400"),
    _as("a bare CR in a value", _get("GET / HTTP/1.1", "X: a\rb"), "400; refused; 400"),
    _as("a bare CR in front of a line end", _get("GET / HTTP/1.1", "X: a\r"), "400; refused; 400"),
    _as("a NUL in a value", _get("GET / HTTP/1.1", "X: a\0b"), "400; refused; 400"),
    _as("a NUL in a name", _get("GET / HTTP/1.1", "X\0: a"), "400; refused; 400"),
    _as(
        "a control character in a value", _get("GET / HTTP/1.1", "X: a\x01b"), "taken; refused; 400"
    ),
    _as("DEL in a value", _get("GET / HTTP/1.1", "X: a\x7fb"), "taken; refused; 400"),
    _as("a value in Latin-1", _get("GET / HTTP/1.1", b"X: \xe9"), "taken; taken; 200"),
    _as("a value that is folded", _get("GET / HTTP/1.1", "X: a\r\n b"), "taken; refused; 400"),
    _as(
        "a value that is folded by a tab",
        _get("GET / HTTP/1.1", "X: a\r\n\tb"),
        "taken; refused; 400",
    ),
    _as(
        "a first header that is folded",
        b"GET / HTTP/1.1\r\n X: a\r\nHost: x\r\n\r\n",
        "400; refused; 400",
    ),
    _as("a space in front of a colon", _get("GET / HTTP/1.1", "X : a"), "400; refused; 400"),
    _as("a tab in front of a colon", _get("GET / HTTP/1.1", "X\t: a"), "400; refused; 400"),
    _as("a space in a name", _get("GET / HTTP/1.1", "X y: a"), "400; refused; 400"),
    _as("no name", _get("GET / HTTP/1.1", ": a"), "400; refused; 400"),
    _as("no colon", _get("GET / HTTP/1.1", "X"), "400; refused; 400"),
    _as("a name in Latin-1", _get("GET / HTTP/1.1", b"X\xe9: a"), "400; refused; 400"),
    _as("a name in parentheses", _get("GET / HTTP/1.1", "(X): a"), "400; refused; 400"),
    _as("no Host", b"GET / HTTP/1.1\r\n\r\n", "400; taken; 400"),
    _as("two Hosts", _get("GET / HTTP/1.1", "Host: y"), "400; taken; 400"),
    _as("two Hosts that say the same", _get("GET / HTTP/1.1", "Host: x"), "400; taken; 400"),
    _as("two Hosts in HTTP/1.0", _get("GET / HTTP/1.0", "Host: y"), "400; taken; 400"),
    _as("a target with the name of a host", _get("GET http://y/ HTTP/1.1"), "taken; taken; 400"),
    _as(
        "a target that is only the name of a host",
        _get("CONNECT x:80 HTTP/1.1"),
        "taken; stops behind the head; 400",
    ),
    _as("CONNECT with a path", _get("CONNECT / HTTP/1.1"), "taken; stops behind the head; 400"),
    _as("the target ``*``", _get("OPTIONS * HTTP/1.1"), "taken; taken; 400"),
    _as("a target that is no path", _get("GET index HTTP/1.1"), "taken; refused; 400"),
    _as("a target with a fragment", _get("GET /#a HTTP/1.1"), "taken; taken; 400"),
    _as("no target", _get("GET HTTP/1.1"), "400; refused; 400"),
    _as("a target with a space", _get("GET /a b HTTP/1.1"), "400; refused; 400"),
    _as("a target with a tab", _get("GET /a\tb HTTP/1.1"), "400; refused; 400"),
    _as("a target with a NUL", _get("GET /\0 HTTP/1.1"), "400; refused; 400"),
    _as("a target in Latin-1", _get(b"GET /\xe9 HTTP/1.1"), "400; refused; 400"),
    _as("two spaces in front of the target", _get("GET  / HTTP/1.1"), "400; taken; 400"),
    _as("two spaces behind it", _get("GET /  HTTP/1.1"), "400; taken; 400"),
    _as("a tab in front of the target", _get("GET\t/ HTTP/1.1"), "400; refused; 400"),
    _as("a space behind the version", _get("GET / HTTP/1.1 "), "400; refused; 400"),
    _as("a space in front of the method", _get(" GET / HTTP/1.1"), "400; refused; 400"),
    _as("a method that nobody knows", _get("FETCH / HTTP/1.1"), "taken; refused; 400"),
    _as("a method in small letters", _get("get / HTTP/1.1"), "taken; refused; 400"),
    _as("a method with a NUL", _get("GE\0T / HTTP/1.1"), "400; refused; 400"),
    _as("no method", _get("/ HTTP/1.1"), "400; refused; 400"),
    _as("HTTP/0.9 without a version", b"GET /\r\n\r\n", "400; taken; 400"),
    _as("HTTP/0.9 with one", _get("GET / HTTP/0.9"), "taken; taken; 505"),
    _as("HTTP/1.2", _get("GET / HTTP/1.2"), "taken; refused; 400"),
    _as("HTTP/2.0", _get("GET / HTTP/2.0"), "taken; taken; 505"),
    _as("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "taken; refused; 400"),
    _as("``HTTP/1.10``", _get("GET / HTTP/1.10"), "400; refused; 400"),
    _as("``HTTP/01.1``", _get("GET / HTTP/01.1"), "400; refused; 400"),
    _as("``http/1.1``", _get("GET / http/1.1"), "400; refused; 400"),
    _as("RTSP", _get("GET / RTSP/1.0"), "400; taken; 400"),
    _as("ICE", _get("SOURCE / ICE/1.0"), "400; taken; 400"),
    _as("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(32), "400; refused; 400"),
    _as("an empty line in front of it", b"\r\n" + _get("GET / HTTP/1.1"), "400; taken; 200"),
    _as("an empty line that ends with LF", b"\n" + _get("GET / HTTP/1.1"), "400; taken; 400"),
    _as(
        "an upgrade with a body",
        _post("Connection: Upgrade", "Upgrade: h2c", "Content-Length: 5"),
        "taken; stops behind the head; 200",
    ),
    _as(
        "an upgrade with chunks",
        _post("Connection: Upgrade", "Upgrade: h2c", CHUNKED, body=NONE),
        "taken; stops behind the head; 200",
    ),
    _as(
        "an upgrade with both",
        _post("Connection: Upgrade", "Upgrade: h2c", CHUNKED, "Content-Length: 5", body=NONE),
        "taken; refused; 400",
    ),
    _as(
        "an upgrade to WebSockets",
        _get("GET / HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"),
        "taken; stops behind the head; 200",
    ),
    _as("5000 headers", _get("GET / HTTP/1.1", *["X: y"] * 5000), "taken; taken; 431"),
    _as("16000 headers of one byte", _get("GET / HTTP/1.1", *["X:"] * 16000), "taken; taken; 431"),
    _as("a header of 32 kB", _get("GET / HTTP/1.1", "X: " + "y" * 32768), "taken; taken; 431"),
    _as(
        "32 kB of spaces in front of a value",
        _get("GET / HTTP/1.1", "X:" + " " * 65536 + "y"),
        "taken; taken; 431",
    ),
    _as("a target of 32 kB", _get("GET /" + "x" * 32768 + " HTTP/1.1"), "taken; taken; 431"),
    _as("a method of 64 kB", _get("G" * 65536 + " / HTTP/1.1"), "taken; refused; 400"),
)
