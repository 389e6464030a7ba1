"""Over TLS: neither records nor packets are responses, and who is not trusted is told so."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import attrs
import httpx2
import pytest
import trio
import trustme
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.http.channels import Channels, Outgoing, Received, Target

GUARD = 60
HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"content-length: 2\r\n\r\nok"
EVIL = HEAD + b"content-length: 2\r\n\r\nno"
EVENTS = HEAD + b"transfer-encoding: chunked\r\n\r\n4\r\nit\n\n\r\n"


@attrs.define(eq=False)
class Corked(trio.abc.Stream):
    """Sends all that it has been given at once."""

    tcp: trio.SocketStream
    held: bytearray | None = attrs.field(default=None, init=False)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.held is None:
            await self.tcp.send_all(data)
        else:
            self.held += data

    async def uncork(self) -> None:
        assert self.held is not None
        held, self.held = self.held, None
        await self.tcp.send_all(held)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return bytes(await self.tcp.receive_some(max_bytes))

    async def wait_send_all_might_not_block(self) -> None:
        await self.tcp.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self.tcp.aclose()


@attrs.define(eq=False)
class Peer:
    corked: Corked
    tls: trio.SSLStream[Corked]
    left: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def request(self) -> bytes:
        data = b""
        try:
            while not data.endswith(b"{}") and (more := await self.tls.receive_some()):
                data += more
        except trio.BrokenResourceError:
            data = b""
        if not data:
            self.left.set()
        return data

    async def say(self, *records: bytes) -> None:
        """All of them in one packet."""
        self.corked.held = bytearray()
        for record in records:
            await self.tls.send_all(record)
        await self.corked.uncork()


@attrs.define(eq=False)
class Server:
    serve: Callable[[Peer], Awaitable[None]]
    ours: ssl.SSLContext
    theirs: ssl.SSLContext
    target: Target = attrs.field(init=False)
    peers: list[Peer] = attrs.field(factory=list, init=False)

    async def run(self, tcp: trio.SocketStream) -> None:
        corked = Corked(tcp)
        async with tcp:
            tls = trio.SSLStream(corked, self.theirs, server_side=True, https_compatible=True)
            peer = Peer(corked, tls)
            try:
                await tls.do_handshake()
                self.peers.append(peer)
                await self.serve(peer)
            except trio.BrokenResourceError:
                peer.left.set()

    async def ask(self, channels: Channels) -> Received:
        return await channels.send(Outgoing("POST", self.target, {}, b"{}"), None)


@asynccontextmanager
async def opened(
    serve: Callable[[Peer], Awaitable[None]],
) -> AsyncGenerator[tuple[Server, Channels]]:
    authority = trustme.CA()
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    server, channels = Server(serve, ours, theirs), Channels(ours, restricted=False)
    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery:
            start = partial(trio.serve_tcp, server.run, 0, host="127.0.0.1")
            (listener,) = await nursery.start(start)
            port = listener.socket.getsockname()[1]
            server.target = Target.of(httpx2.URL(f"https://127.0.0.1:{port}/mcp"))
            yield server, channels
            channels.close()
            nursery.cancel_scope.cancel()


async def whole(response: Received) -> bytes:
    body = b""
    try:
        while chunk := await response.chunk():
            body += chunk
    finally:
        await response.aclose()
    return body


async def test_one_connection_is_used_again_and_again() -> None:
    async def serve(peer: Peer) -> None:
        while await peer.request():
            await peer.say(OK)

    async with opened(serve) as (server, channels):
        for _ in range(5):
            assert await whole(await server.ask(channels)) == b"ok"
        assert len(server.peers) == 1
        assert server.peers[0].tls.version() == "TLSv1.3"  # with tickets for other sessions


@pytest.mark.parametrize("more", [(EVIL,), (b"HT", EVIL[2:]), (b"\r\n",)])
async def test_what_comes_in_the_packet_of_an_answer_is_no_answer_to_what_is_asked_next(
    more: tuple[bytes, ...],
) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.say(OK, *more)
        await peer.request()

    async with opened(serve) as (server, channels):
        for number in range(3):
            assert await whole(await server.ask(channels)) == b"ok"
            assert len(server.peers) == number + 1


async def test_what_comes_unasked_later_is_no_answer_either() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.say(OK)
        await is_read.wait()
        await peer.say(EVIL)
        await peer.request()

    async with opened(serve) as (server, channels):
        for number in range(2):
            is_read = trio.Event()
            assert await whole(await server.ask(channels)) == b"ok"
            is_read.set()
            await wait_all_tasks_blocked(0.01)
            assert len(server.peers) == number + 1


@pytest.mark.parametrize(
    ("more", "is_reused"),
    [
        ((b"0\r\n\r\n",), True),
        ((b"2\r\nok\r\n", b"0\r\n", b"\r\n"), True),
        ((), False),
        ((b"0\r\n",), False),
        ((b"0\r\n\r\n", EVIL), False),
    ],
)
async def test_where_a_stream_has_ended_in_the_packet_of_its_event_something_else_is_asked(
    more: tuple[bytes, ...], is_reused: bool
) -> None:
    async def serve(peer: Peer) -> None:
        while await peer.request():
            await peer.say(EVENTS, *more)

    async with opened(serve) as (server, channels):
        for _ in range(3):
            response = await server.ask(channels)
            assert await response.chunk() == b"it\n\n"
            response.leave()
            await response.aclose()
        assert len(server.peers) == (1 if is_reused else 3)


async def test_a_body_may_end_without_a_word_of_parting() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.say(HEAD + b"\r\nall of it")
        await peer.corked.aclose()

    async with opened(serve) as (server, channels):
        for number in range(2):
            assert await whole(await server.ask(channels)) == b"all of it"
            assert len(server.peers) == number + 1


async def test_who_is_not_trusted_is_told_so() -> None:
    async def serve(peer: Peer) -> None:
        raise AssertionError("nobody says anything")

    async with opened(serve) as (server, _):
        others = Channels(ssl.create_default_context(), restricted=False)
        why = r"certificate is not trusted: .*certificate"
        with pytest.raises(httpx2.ConnectError, match=why):
            await server.ask(others)


async def test_who_speaks_no_tls_is_told_so() -> None:
    async def serve(tcp: trio.SocketStream) -> None:
        async with tcp:
            await tcp.send_all(b"HTTP/1.1 400 speak plainly\r\n\r\n")

    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
            port = listener.socket.getsockname()[1]
            target = Target.of(httpx2.URL(f"https://127.0.0.1:{port}/"))
            channels = Channels(ssl.create_default_context(), restricted=False)
            with pytest.raises(httpx2.ConnectError, match=r"does not speak TLS as we do: .+"):
                await channels.send(Outgoing("POST", target, {}, b"{}"), None)
            nursery.cancel_scope.cancel()
