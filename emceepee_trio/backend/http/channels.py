"""TCP connections to a server, kept alive between requests, and one request on one of them.

A request is sent once: whatever becomes of it, it is for others to say whether it is sent again.
Where the environment names a proxy for a URL, httpx2 does all of it. Knows neither messages nor
who asks.
"""

from __future__ import annotations

import os
import select
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Protocol, TypeAlias

import attrs
import httpx2
import trio

from ..connections.sdk import unheard
from .network import connect, through_proxy
from .posts import Post
from .responses import ResponseReader

PATIENCE = 30.0
"""Seconds to connect, and to write. Reading has no bound of its own: every request carries a
deadline, and a stream may be silent for hours."""
END = 0.05
"""Seconds to read the end of a response that has come, at least in part."""
IDLE = 5.0
"""Seconds that a connection is kept; servers close theirs, too, and some without a word."""
KEPT = 20
"""Connections to one origin that are kept beyond their request."""
MANY = 100
"""Headers, for others to run before they are looked at again; and pieces of a body."""
CHUNK = 64 * 1024
"""Bytes that are read at once."""

Origin: TypeAlias = tuple[str, str, int]
"""Scheme, host and port."""
_PORTS = {"http": 80, "https": 443}


@attrs.frozen
class Target:
    """Where a request goes."""

    url: httpx2.URL
    origin: Origin
    path: bytes

    @classmethod
    def of(cls, url: httpx2.URL) -> Target:
        host, port = url.raw_host.decode("ascii"), url.port or _PORTS.get(url.scheme)
        if port is None or not host:
            raise httpx2.UnsupportedProtocol(f"cannot speak HTTP to {url.scheme}://{host}")
        return cls(url, (url.scheme, host, port), url.raw_path)


@attrs.frozen
class Outgoing:
    """A request as it is sent."""

    method: str
    target: Target
    headers: dict[bytes, bytes]
    body: bytes | None = None

    def spelled(self) -> bytes:
        """
        Raises:
            LocalProtocolError: a header would be more than one.
        """
        lines = [b"%b %b HTTP/1.1" % (self.method.encode(), self.target.path)]
        lines += [b"%b: %b" % header for header in self.headers.items()]
        if self.body is not None:
            lines.append(b"content-length: %d" % len(self.body))
        head = b"\r\n".join(lines)
        breaks = len(lines) - 1
        if head.count(b"\r") != breaks or head.count(b"\n") != breaks or b"\0" in head:
            raise httpx2.LocalProtocolError("a header has a line break in it")
        return b"%b\r\n\r\n%b" % (head, self.body or b"")


class Received(Protocol):
    """A response, of which the head has come. Whoever has it closes it."""

    @property
    def request(self) -> Outgoing:
        """What it answers."""
        ...

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Names in lower case."""
        ...

    async def chunk(self) -> bytes:
        """More of its body; nothing at its end.

        Raises:
            httpx2.RequestError: that has been lost.
        """
        ...

    def leave(self) -> None:
        """What was wanted of it has come; its connection may be used again if its end does."""
        ...

    async def aclose(self) -> None: ...


@attrs.define(eq=False)
class Channels:
    """Of one connection to a server, which may lead to more than one origin."""

    _certificates: ssl.SSLContext
    _restricted: bool
    _client: httpx2.AsyncClient | None = None
    """Who knows the proxies of the environment, where they may be asked."""
    _idle: dict[Origin, list[TcpChannel]] = attrs.field(factory=dict, init=False)
    """Those that were used last are last."""
    _is_closed: bool = attrs.field(default=False, init=False)

    async def send(self, request: Outgoing, post: Post | None) -> Received:
        """
        Raises:
            httpx2.RequestError: there is no response.
        """
        proxied = through_proxy(self._client, request.target.url)
        if proxied is not None:
            return await _through(proxied, request, post)
        data = request.spelled()
        if (channel := await self._kept(request.target.origin)) is None:
            if post is not None:
                post.is_unsent = True
            channel = await self._open(request.target.origin)
        if post is not None:
            post.is_unsent = False
        try:
            return await channel.ask(request, data)
        except BaseException:
            channel.close()
            raise

    async def _kept(self, origin: Origin) -> TcpChannel | None:
        kept, now = self._idle.get(origin), time.monotonic()
        while kept and now - kept[0].idle_since >= IDLE:
            kept.pop(0).close()
        while kept:
            channel = kept.pop()
            if await channel.is_free():
                return channel
            channel.close()
        return None

    async def _open(self, origin: Origin) -> TcpChannel:
        scheme, host, port = origin
        stream = await connect(host, port, PATIENCE, restricted=self._restricted)
        if scheme == "http":
            return TcpChannel(self, origin, stream.socket, stream)
        below = _Below(stream)
        secure = trio.SSLStream(
            below, self._certificates, server_hostname=host, https_compatible=True
        )
        channel = TcpChannel(self, origin, stream.socket, secure, below)
        try:
            with trio.fail_after(PATIENCE):
                await secure.do_handshake()
        except trio.TooSlowError as error:
            channel.close()
            raise httpx2.ConnectTimeout(str(error)) from error
        except trio.BrokenResourceError as error:
            channel.close()
            raise httpx2.ConnectError(_no_tls(error)) from error
        except BaseException:
            channel.close()
            raise
        return channel

    def take_back(self, channel: TcpChannel) -> None:
        """Its request is over, and it may be used again."""
        kept = self._idle.setdefault(channel.origin, [])
        if self._is_closed or len(kept) >= KEPT:
            channel.close()
        else:
            channel.idle_since = time.monotonic()
            kept.append(channel)

    def close(self) -> None:
        """Those that are in use close themselves."""
        self._is_closed = True
        for kept in self._idle.values():
            for channel in kept:
                channel.close()
        self._idle.clear()


def _no_tls(error: trio.BrokenResourceError) -> str:
    """Why nothing encrypted can be sent."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    return f"it does not speak TLS as we do: {cause or 'connection closed'}"


@attrs.define(eq=False)
class _Below(trio.abc.Stream):
    """TCP, of which TLS reads more at once than it hands on: nobody sees whether it has read all.

    So who wants to know has it hand on the rest, and not wait for more.
    """

    _tcp: trio.SocketStream
    waits: bool = attrs.field(default=True, init=False)
    """Else, where there is nothing to read, that is an error."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if not self.waits and not self._tcp.socket.is_readable():
            raise trio.WouldBlock
        return bytes(await self._tcp.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._tcp.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._tcp.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._tcp.aclose()


@attrs.define(eq=False)
class TcpChannel:
    """One TCP connection, with one request at a time."""

    _all: Channels
    origin: Origin
    socket: trio.socket.SocketType
    _stream: trio.abc.Stream
    _below: _Below | None = None
    """What there is of it below TLS."""
    idle_since: float = attrs.field(default=0.0, init=False)
    _news: select.poll = attrs.field(factory=select.poll, init=False)
    _is_written: bool = attrs.field(default=False, init=False)
    """All of the request has been taken."""
    _last: ResponseReader | None = attrs.field(default=None, init=False)
    """Of a response of which nobody waits for the end."""

    def __attrs_post_init__(self) -> None:
        self._news.register(self.socket.fileno(), select.POLLIN)

    async def is_free(self) -> bool:
        """The last response has ended, and nobody has said anything since, or gone."""
        last, self._last = self._last, None
        if self._below is None and last is None:
            return not self._news.poll(0)
        try:
            with trio.move_on_after(END) as scope:
                while (data := await self._unread()) is not None:
                    if last is None or last.is_whole:
                        return False
                    _take(data, last)
                    last.body()  # nobody reads it
        except httpx2.RequestError:
            return False
        except BaseException:
            self.close()
            raise
        is_over = last is None or (last.is_whole and last.goes_on)
        return is_over and not scope.cancelled_caught

    async def _unread(self) -> bytes | None:
        """What has come, if anything has, without a wait for it; nothing at the end."""
        if self._below is None:
            return await self._receive() if self._news.poll(0) else None
        self._below.waits = False
        try:
            return await self._receive()
        except trio.WouldBlock:
            return None
        finally:
            self._below.waits = True

    async def ask(self, request: Outgoing, data: bytes) -> Received:
        await self._write(data)
        reader = ResponseReader()
        while not reader.is_headed:
            await self.read(reader)
        if len(reader.headers) > MANY:
            await trio.lowlevel.checkpoint()  # all of them are looked at again
        return _Direct(request, self, reader, reader.status, reader.headers)

    async def _write(self, data: bytes) -> None:
        """At once, as far as there is room; a server that has had enough may still answer."""
        self._is_written, sent = False, 0
        try:
            if isinstance(self._stream, trio.SocketStream):
                with suppress(BlockingIOError):
                    sent = os.write(self.socket.fileno(), data)
            if sent < len(data):
                with trio.fail_after(PATIENCE):
                    await self._stream.send_all(memoryview(data)[sent:])
        except trio.TooSlowError as error:
            raise httpx2.WriteTimeout(str(error)) from error
        except (OSError, trio.BrokenResourceError):
            return
        self._is_written = True

    async def read(self, reader: ResponseReader) -> None:
        """More of a response.

        Raises:
            httpx2.ReadError: the connection is broken.
            BadResponse: what comes is none.
        """
        _take(await self._receive(), reader)

    async def _receive(self) -> bytes:
        try:
            return bytes(await self._stream.receive_some(CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpx2.ReadError(str(error)) from error

    def done(self, reader: ResponseReader, *, may_end: bool) -> None:
        """Nobody reads it any further, unless it *may end* before there is something to ask."""
        self._last = None if reader.is_whole else reader
        if self._is_written and (reader.goes_on if reader.is_whole else may_end):
            self._all.take_back(self)
        else:
            self.close()

    def close(self) -> None:
        self.socket.close()


def _take(data: bytes, reader: ResponseReader) -> None:
    if data:
        reader.feed(data)
    else:
        reader.end()


@attrs.define(eq=False)
class _Direct:
    """A response on a connection of ours."""

    request: Outgoing
    _channel: TcpChannel
    _reader: ResponseReader
    status: int
    headers: list[tuple[bytes, bytes]]
    _is_closed: bool = attrs.field(default=False, init=False)

    async def chunk(self) -> bytes:
        while not (data := self._reader.body()) and not self._reader.is_whole:
            await self._channel.read(self._reader)
        return data

    def leave(self) -> None:
        self._done(may_end=True)

    async def aclose(self) -> None:
        self._done(may_end=False)

    def _done(self, *, may_end: bool) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._channel.done(self._reader, may_end=may_end)


async def _through(
    transport: httpx2.AsyncBaseTransport, request: Outgoing, post: Post | None
) -> Received:
    """By way of a proxy, which is rare, and the work of httpx2."""
    limits = httpx2.Timeout(PATIENCE, read=None, pool=None).as_dict()
    with unheard():
        response = await transport.handle_async_request(
            httpx2.Request(
                request.method,
                request.target.url,
                headers=list(request.headers.items()),
                content=request.body,
                extensions={"timeout": limits} | ({"trace": post.trace} if post else {}),
            )
        )
        headers = [(name.lower(), value) for name, value in response.headers.raw]
        if len(headers) > MANY:
            await trio.lowlevel.checkpoint()
        return _Proxied(request, response, response.status_code, headers)


@attrs.define(eq=False)
class _Proxied:
    """A response that httpx2 reads."""

    request: Outgoing
    _response: httpx2.Response
    status: int
    headers: list[tuple[bytes, bytes]]
    _chunks: AsyncIterator[bytes] = attrs.field(init=False)
    _pieces: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)
        self._chunks = aiter(self._response.stream)

    async def chunk(self) -> bytes:
        with unheard():
            async for chunk in self._chunks:
                self._pieces += 1
                if self._pieces % MANY == 0:  # of what is read at once, there may be very many
                    await trio.lowlevel.checkpoint()
                if chunk:
                    return chunk
            return b""

    def leave(self) -> None:
        pass  # it is closed

    async def aclose(self) -> None:
        with unheard():
            await self._response.aclose()
