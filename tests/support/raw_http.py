"""A client that speaks to sockets, politely or not, and our listeners around any ASGI app."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.serving.asgi import App
from emceepee_trio.serving.binds import Bind, Tcp, listening
from emceepee_trio.serving.connection import Connection
from emceepee_trio.serving.listen import Drain, serve_http

ANY_PORT = Tcp("127.0.0.1", 0)
GUARD = 60
NARROW = 16384
"""Bytes of a buffer in the kernel, which else are millions."""


@attrs.frozen
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@attrs.define(eq=False)
class Peer:
    """One connection, and what has come over it and is not yet taken."""

    stream: trio.SocketStream
    came: bytearray = attrs.field(factory=bytearray)

    async def send(self, data: str | bytes) -> None:
        """Line ends are added to text."""
        if isinstance(data, str):
            data = data.replace("\n", "\r\n").encode()
        await self.stream.send_all(data)

    async def more(self) -> bool:
        """Read on; False at the end."""
        try:
            with trio.fail_after(GUARD):
                data = await self.stream.receive_some()
        except trio.BrokenResourceError:
            return False
        self.came += data
        return bool(data)

    async def until(self, mark: bytes) -> bytes:
        """Everything up to and with *mark*."""
        while (at := self.came.find(mark)) < 0:
            assert await self.more(), f"closed after {bytes(self.came)!r}"
        return self.take(at + len(mark))

    def take(self, size: int) -> bytes:
        taken = bytes(self.came[:size])
        del self.came[:size]
        return taken

    async def answer(self, *, bodiless: bool = False) -> Answer:
        """One answer that announces its length."""
        head, *lines = (await self.until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        named = (line.partition(": ") for line in lines if line)
        headers = {name.lower(): value for name, _, value in named}
        size = 0 if bodiless else int(headers.get("content-length", 0))
        while len(self.came) < size:
            assert await self.more(), f"closed in the middle of {head}"
        return Answer(int(head.split()[1]), headers, self.take(size))

    async def rest(self) -> bytes:
        """Everything until the connection is closed."""
        while await self.more():
            pass
        return self.take(len(self.came))

    async def ask(self, head: str, body: str = "") -> Answer:
        await self.send(f"{head}\n\n{body}")
        return await self.answer()


@attrs.frozen
class Served:
    port: int
    """Of the first socket, if it has one."""
    drain: Drain

    @property
    def connection(self) -> Connection:
        """The only one there is."""
        (connection,) = self.drain.connections
        return connection

    @asynccontextmanager
    async def peer(self, path: Path | None = None) -> AsyncGenerator[Peer]:
        """A connection over TCP, or to a Unix socket."""
        stream = (
            await trio.open_tcp_stream("127.0.0.1", self.port)
            if path is None
            else await trio.open_unix_socket(path)
        )
        async with stream:
            yield Peer(stream)

    @asynccontextmanager
    async def narrow_peer(self) -> AsyncGenerator[Peer]:
        """The only connection; what is not read from it soon fills it."""
        async with self.peer() as peer:
            peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
            with trio.fail_after(GUARD):
                while not self.drain.connections:
                    await wait_all_tasks_blocked(0.001)
            self.connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, NARROW)
            yield peer

    async def ask(self, head: str, body: str = "") -> Answer:
        async with self.peer() as peer:
            return await peer.ask(head, body)


@asynccontextmanager
async def serving(app: App, *binds: Bind, grace: float = 0.0) -> AsyncGenerator[Served]:
    """Our listeners around *app*; drained when the block is left."""
    with listening(binds or [ANY_PORT]) as sockets:
        async with trio.open_nursery() as nursery:
            drain = Drain(grace)
            nursery.start_soon(serve_http, app, sockets, drain)
            try:
                yield Served(sockets[0].socket.getsockname()[1], drain)
            finally:
                drain.begin(skip_grace=True)
