"""A running daemon, for commands that ask one something: its address, its token, plain HTTP.

Follows no redirects and uses no proxy: the token is for the daemon alone. Who answers may be no
daemon of ours, so nothing it says is endless, and nothing it says is believed before it is looked
at.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from ...config import ON_DEMAND
from ...config.bounds import MAX_EXECUTE_TIMEOUT_MS, MIB
from ...model.wire import loads
from ...web.token_file import BadToken, find_token
from .options import Usage
from .terminal import working

PATIENCE = 10.0
"""Seconds that the daemon may take to answer."""
SILENCE = 60.0
"""Seconds without a sign of life of a call; its stream has one every 15."""
LONGEST = MAX_EXECUTE_TIMEOUT_MS / 1000 + SILENCE
"""Seconds of a call that does give signs of life."""
MAX_ANSWER = 64 * MIB
"""Bytes of an answer, or of a message of a stream; more is not read."""


class NoAnswer(Exception):
    """Nobody answered, or not as a daemon of ours would; says what to do, in one line."""


@attrs.frozen
class RemoteDaemon:
    url: str
    """Its address, or that of any page of it; or unix:PATH."""
    _token: str | None = attrs.field(repr=False)

    @classmethod
    def find(cls, url: str, state: Path | None) -> RemoteDaemon:
        """With the token of the environment or of the state directory, if there is one.

        Raises:
            NoAnswer: the file is there, but no good.
        """
        try:
            return cls(url, find_token(state))
        except BadToken as error:
            raise NoAnswer(str(error)) from None

    @contextmanager
    def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] = {},
        body: Any = None,
        *,
        patience: float | None = None,
        longest: float | None = None,
    ) -> Generator[HTTPResponse]:
        """The response, to be read in the block, with *patience* for each part of it.

        Raises:
            NoAnswer: nobody answers, or stops before the end; or the token is not the right one;
                or all of it takes longer than *longest*.
        """
        patience = patience or PATIENCE
        sent = dict(headers)
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        connection = _connection(self.url, patience)
        end = threading.Timer(longest or 3 * patience, _cut, [connection])
        end.daemon = True
        end.start()
        try:
            said = None if body is None else json.dumps(body)
            with working("asking the daemon"):
                connection.request(method, path, said, sent)
                response = connection.getresponse()
            if response.status == 401:
                raise NoAnswer(
                    f"the daemon at {self.url} wants another token; set EMCEEPEE_TOKEN, or name "
                    "its --state-dir"
                )
            yield response
        except (OSError, HTTPException, ValueError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)[:200] or type(error).__name__
            raise NoAnswer(
                f"no daemon answers at {self.url} ({reason}); `emceepee serve` starts one"
            ) from None
        finally:
            end.cancel()
            connection.close()

    def stranger(self, response: HTTPResponse) -> NoAnswer:
        return NoAnswer(
            f"what answers at {self.url} is no emceepee daemon (status {response.status})"
        )


def _cut(connection: HTTPConnection) -> None:
    """Whoever reads from it finds that it has ended."""
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def body_of(response: HTTPResponse) -> bytes:
    """
    Raises:
        HTTPException: it is too long.
    """
    body = response.read(MAX_ANSWER + 1)
    if len(body) > MAX_ANSWER:
        raise _too_long()
    return body


def _too_long() -> HTTPException:
    return HTTPException(f"an answer of more than {MAX_ANSWER} bytes")


def _connection(url: str, patience: float) -> HTTPConnection:
    if url.startswith("unix:"):
        return _UnixConnection(url.removeprefix("unix:"), patience)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Usage(f"--url: expected http://HOST:PORT or unix:PATH, got {url!r}")
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        return kind(parts.hostname, parts.port, timeout=patience)
    except ValueError as error:
        raise Usage(f"--url: {error}") from None


class _UnixConnection(HTTPConnection):
    def __init__(self, path: str, patience: float) -> None:
        super().__init__("localhost", timeout=patience)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@attrs.frozen
class RemoteSession:
    """A session of our own on a daemon, in which one request is asked after the other."""

    _daemon: RemoteDaemon
    _headers: Mapping[str, str]

    @classmethod
    @contextmanager
    def connected(
        cls, daemon: RemoteDaemon, name: str, *, on_demand: bool = False
    ) -> Generator[RemoteSession]:
        """The session ends with the block; *on_demand*: it starts only what it asks.

        Raises:
            NoAnswer: there is no session to be had.
        """
        from importlib.metadata import version

        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"experimental": {ON_DEMAND: {}}} if on_demand else {},
            "clientInfo": {"name": name, "version": version("emceepee-trio")},
        }
        with daemon.request("POST", "/mcp", headers, _message("initialize", hello)) as response:
            answer = _answer(daemon, response)
            headers["Mcp-Session-Id"] = response.headers.get("Mcp-Session-Id", "")
        if "result" not in answer or not headers["Mcp-Session-Id"]:
            raise daemon.stranger(response)
        try:
            told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            with daemon.request("POST", "/mcp", headers, told) as response:
                body_of(response)
            yield cls(daemon, headers)
        finally:
            try:
                with daemon.request("DELETE", "/mcp", headers) as response:
                    body_of(response)
            except NoAnswer:
                pass  # then it is gone with its daemon

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a tool of the daemon's, as it came.

        Raises:
            NoAnswer: there is none.
        """
        asked = _message("tools/call", {"name": tool, "arguments": arguments})
        with self._daemon.request(
            "POST", "/mcp", self._headers, asked, patience=SILENCE, longest=LONGEST
        ) as response:
            answer = _answer(self._daemon, response)
        if not isinstance(answer.get("result"), dict):
            raise _refused(self._daemon, response, answer)
        result: dict[str, Any] = answer["result"]
        return result


def _message(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _answer(daemon: RemoteDaemon, response: HTTPResponse) -> dict[str, Any]:
    """The answer in a response, which is JSON or a stream of messages."""
    if response.headers.get_content_type() == "text/event-stream":
        messages: Iterable[bytes] = _messages(response)
    else:
        messages = [body_of(response)]
    for message in messages:
        try:
            said = loads(message.decode())
        except (ValueError, RecursionError):
            raise daemon.stranger(response) from None
        if isinstance(said, dict) and response.status >= 400:
            raise _refused(daemon, response, said)
        if isinstance(said, dict) and "method" not in said:
            return said
    raise NoAnswer(f"the daemon at {daemon.url} went away before it answered; see its log")


def _messages(response: HTTPResponse) -> Generator[bytes]:
    data: list[bytes] = []
    size = 0
    while line := response.readline(MAX_ANSWER + 1):
        size += len(line)
        if size > MAX_ANSWER:
            raise _too_long()
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line.strip():
            if any(data):
                yield b"\n".join(data)
            data.clear()
            size = 0


def _refused(daemon: RemoteDaemon, response: HTTPResponse, answer: Mapping[str, Any]) -> NoAnswer:
    error = answer.get("error")
    if not isinstance(error, dict):
        return daemon.stranger(response)
    return NoAnswer(f"the daemon at {daemon.url} refused: {error.get('message')}")
