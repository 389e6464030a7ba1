"""HTTP/1.1 to one daemon, a connection for each request that is under way. Knows no MCP.

Follows no redirects and uses no proxy: the token is for the daemon alone.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections import deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import h11

SILENCE = 60.0
"""Seconds without a byte after which a daemon counts as gone; its streams have a sign of life every
15."""
IDLE = 30.0
"""Seconds after which a connection is not used again; the daemon keeps it for 75."""
CHUNK = 65536


class Gone(Exception):
    """Nobody answers, or stops in the middle."""

    def __init__(self, error: Exception, *, was_sent: bool) -> None:
        super().__init__(getattr(error, "strerror", None) or str(error) or type(error).__name__)
        self.was_sent = was_sent
        """Whether the daemon may have taken the request."""


class Address:
    """Where a daemon listens: ``http://HOST:PORT``, with or without a path, or ``unix:PATH``.

    Raises:
        ValueError: it is neither.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.path = text.removeprefix("unix:") if text.startswith("unix:") else None
        """Of a Unix socket."""
        self.is_secure = False
        self.host, self.port, self.authority = "localhost", 0, "localhost"
        if self.path is not None:
            if not self.path or "\0" in self.path:
                raise ValueError(f"expected unix:PATH, got {text!r}")
            return
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"expected http://HOST:PORT or unix:PATH, got {text!r}")
        self.is_secure = parts.scheme == "https"
        self.host, self.port = parts.hostname, parts.port or (443 if self.is_secure else 80)
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.authority = f"{host}:{self.port}"

    def __str__(self) -> str:
        return self.text

    def connect(self) -> socket.socket:
        if self.path is not None:
            found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            found.settimeout(SILENCE)
            try:
                found.connect(self.path)
            except BaseException:
                found.close()
                raise
            return found
        found = socket.create_connection((self.host, self.port), SILENCE)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.is_secure:
            import ssl  # noqa: PLC0415 - few need it, and it is large

            found = ssl.create_default_context().wrap_socket(found, server_hostname=self.host)
        return found


class _Connection:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.state = h11.Connection(h11.CLIENT)
        self.idle_since = 0.0

    def send(self, *events: h11.Event) -> None:
        self.sock.sendall(b"".join(self.state.send(event) or b"" for event in events))

    def next_event(self) -> h11.Event:
        while True:
            event = self.state.next_event()
            if event is h11.NEED_DATA:
                self.state.receive_data(self.sock.recv(CHUNK))
            else:
                assert not isinstance(event, type)  # nothing is pipelined, so it never pauses
                return event

    def is_usable(self) -> bool:
        """Idle, not for long, and nothing has come since: that could only be its end."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return time.monotonic() < self.idle_since + IDLE and not poll.poll(0)


class Response:
    def __init__(self, head: h11.Response, connection: _Connection) -> None:
        self.status = head.status_code
        self.headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        """By lower-case name."""
        self._line = connection

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read_some(self) -> bytes:
        """The next part of the body; nothing at its end."""
        while self._line.state.their_state is h11.SEND_BODY:
            event = self._line.next_event()
            if isinstance(event, h11.Data) and event.data:
                return bytes(event.data)
        return b""

    def read(self, limit: int) -> bytes:
        """All of the body, or the beginning of what is longer."""
        body = bytearray()
        while len(body) <= limit and (chunk := self.read_some()):
            body += chunk
        return bytes(body)


class Interrupt:
    """Lets another thread end a request: whoever reads its response finds it at its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: _Connection | None = None
        self.is_set = False

    def set(self) -> None:
        with self._lock:
            self.is_set = True
            if self._line is not None:
                _shut(self._line)

    @contextmanager
    def over(self, connection: _Connection) -> Generator[None]:
        """What is cut, from here to the end of the block."""
        with self._lock:
            self._line = connection
            if self.is_set:
                _shut(connection)
        try:
            yield
        finally:
            with self._lock:
                self._line = None


def _shut(connection: _Connection) -> None:
    with suppress(OSError):  # it is at its end already
        connection.sock.shutdown(socket.SHUT_RDWR)


class DaemonHttp:
    """Requests to one daemon."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: deque[_Connection] = deque()

    @contextmanager
    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        cut: Interrupt | None = None,
    ) -> Generator[Response]:
        """The response, to be read in the block; left before its end, its connection is closed.

        Raises:
            Gone: in the block, too.
        """
        connection = self._line()
        try:
            with (cut or Interrupt()).over(connection):
                yield self._response(connection, method, target, headers, body or b"")
        except (OSError, h11.RemoteProtocolError) as error:
            raise Gone(error, was_sent=True) from None
        finally:
            self._let_go(connection)

    def _response(
        self,
        connection: _Connection,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> Response:
        named = {"Host": self.address.authority, "Content-Length": str(len(body)), **headers}
        connection.send(
            h11.Request(method=method, target=target, headers=list(named.items())),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        while not isinstance(head := connection.next_event(), h11.Response):
            if not isinstance(head, h11.InformationalResponse):
                raise ConnectionResetError("it closed the connection")
        return Response(head, connection)

    def _line(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            connection.sock.close()
        try:
            return _Connection(self.address.connect())
        except OSError as error:
            raise Gone(error, was_sent=False) from None

    def _let_go(self, connection: _Connection) -> None:
        """Keep it for the next request, if this one is over."""
        try:
            if connection.state.their_state is h11.SEND_BODY:
                # Nothing but the end may be left to see.
                connection.sock.setblocking(False)
                connection.next_event()
                connection.sock.settimeout(SILENCE)
            connection.state.start_next_cycle()
        except (OSError, h11.ProtocolError):
            connection.sock.close()
        else:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
