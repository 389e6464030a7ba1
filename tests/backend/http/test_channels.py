"""A request is sent once, on a connection that nothing else is on: also beside servers that lie."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import attrs
import httpx2
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.http import channels as module
from emceepee_trio.backend.http.channels import MANY, Channels, Outgoing, Received, Target
from emceepee_trio.backend.http.posts import Post

GUARD = 60
HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"content-length: 2\r\n\r\nok"
LENGTH = re.compile(rb"content-length: (\d+)\r\n")


@attrs.define(eq=False)
class Peer:
    """One connection, as a server has it."""

    stream: trio.SocketStream
    number: int
    left: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def request(self) -> bytes:
        """The next one; empty at the end."""
        data = b""
        try:
            while not data.endswith(b"}") and (more := await self.stream.receive_some(1 << 20)):
                data += more
        except trio.BrokenResourceError:
            data = b""
        if not data:
            self.left.set()
        return data


Serve = Callable[[Peer], Awaitable[None]]


@attrs.define(eq=False)
class Raw:
    """A server that says what it is told to."""

    serve: Serve
    target: Target = attrs.field(init=False)
    peers: list[Peer] = attrs.field(factory=list, init=False)

    async def run(self, stream: trio.SocketStream) -> None:
        async with stream:
            self.peers.append(Peer(stream, len(self.peers)))
            await self.serve(self.peers[-1])


@asynccontextmanager
async def opened(serve: Serve) -> AsyncGenerator[tuple[Raw, Channels]]:
    raw = Raw(serve)
    channels = Channels(httpx2.create_ssl_context(), restricted=False)
    with trio.fail_after(GUARD):
        async with trio.open_nursery() as nursery:
            (listener,) = await nursery.start(partial(trio.serve_tcp, raw.run, 0, host="127.0.0.1"))
            port = listener.socket.getsockname()[1]
            raw.target = Target.of(httpx2.URL(f"http://127.0.0.1:{port}/mcp"))
            yield raw, channels
            channels.close()
            nursery.cancel_scope.cancel()


def post(raw: Raw, body: bytes = b"{}", **headers: bytes) -> Outgoing:
    named = {name.encode(): value for name, value in headers.items()}
    return Outgoing("POST", raw.target, named, body)


async def whole(response: Received) -> bytes:
    body = b""
    try:
        while chunk := await response.chunk():
            body += chunk
    finally:
        await response.aclose()
    return body


async def ask(raw: Raw, channels: Channels) -> bytes:
    return await whole(await channels.send(post(raw), None))


async def answers(peer: Peer, answer: bytes = OK) -> None:
    while await peer.request():
        await peer.stream.send_all(answer)


async def test_what_is_sent_is_one_request() -> None:
    heard: list[bytes] = []

    async def serve(peer: Peer) -> None:
        heard.append(await peer.request())
        await peer.stream.send_all(OK)

    async with opened(serve) as (raw, channels):
        assert await whole(await channels.send(post(raw, b'{"a": 1}', host=b"h"), None)) == b"ok"
    assert heard == [b'POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: 8\r\n\r\n{"a": 1}']


@pytest.mark.parametrize("value", [b"a\r\nx-evil: 1", b"a\nx-evil: 1", b"a\rb", b"a\0b"])
async def test_a_header_is_one_header(value: bytes) -> None:
    async with opened(answers) as (raw, channels):
        with pytest.raises(httpx2.LocalProtocolError):
            await channels.send(post(raw, x=value), None)
        assert raw.peers == []


async def test_one_connection_is_used_again_and_again() -> None:
    async with opened(answers) as (raw, channels):
        for _ in range(5):
            assert await ask(raw, channels) == b"ok"
        assert len(raw.peers) == 1


@pytest.mark.parametrize(
    "answer",
    [
        OK + OK,
        OK + b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n",
        OK + b"no",
        HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + OK,
    ],
)
async def test_what_follows_a_response_is_nobodys(answer: bytes) -> None:
    async def serve(peer: Peer) -> None:
        await answers(peer, answer if peer.number == 0 else OK)

    async with opened(serve) as (raw, channels):
        assert await ask(raw, channels) == b"ok"
        await raw.peers[0].left.wait()
        assert await ask(raw, channels) == b"ok"
        assert len(raw.peers) == 2


async def test_what_comes_unasked_is_no_answer_to_what_is_asked_next() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.stream.send_all(OK)
        await is_read.wait()
        await peer.stream.send_all(HEAD + b"content-length: 4\r\n\r\nevil")
        await peer.request()

    async with opened(serve) as (raw, channels):
        for number in range(2):
            is_read = trio.Event()
            assert await ask(raw, channels) == b"ok"
            is_read.set()
            await wait_all_tasks_blocked()
            assert len(raw.peers) == number + 1


async def test_who_has_left_meanwhile_is_not_asked() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.stream.send_all(OK)

    async with opened(serve) as (raw, channels):
        for number in range(3):
            assert await ask(raw, channels) == b"ok"
            assert len(raw.peers) == number + 1
            await wait_all_tasks_blocked(0.01)


@pytest.mark.parametrize("how", ["closed", "reset", "half a head", "half a body"])
async def test_who_leaves_in_the_middle_may_have_run_it_and_is_not_asked_twice(how: str) -> None:
    heard: list[bytes] = []
    says = {"half a head": HEAD, "half a body": HEAD + b"content-length: 9\r\n\r\nok"}

    async def serve(peer: Peer) -> None:
        heard.append(await peer.request())
        await peer.stream.send_all(OK)
        heard.append(await peer.request())
        await peer.stream.send_all(says.get(how, b""))
        if how == "reset":
            peer.stream.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER: no words of parting

    async with opened(serve) as (raw, channels):
        assert await ask(raw, channels) == b"ok"
        about = Post(1)
        with pytest.raises(httpx2.RequestError):
            await whole(await channels.send(post(raw), about))
        assert not about.is_unsent
        assert len(heard) == 2
        assert len(raw.peers) == 1


async def test_who_is_not_there_has_run_nothing() -> None:
    async with opened(answers) as (raw, channels):
        about = Post(1)
        nobody = httpx2.URL("http://127.0.0.1:1/")
        with pytest.raises(httpx2.ConnectError):
            await channels.send(attrs.evolve(post(raw), target=Target.of(nobody)), about)
        assert about.is_unsent


async def test_an_answer_counts_that_comes_before_all_is_written() -> None:
    async def serve(peer: Peer) -> None:
        await peer.stream.receive_some(100)
        await peer.stream.send_all(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno")
        await peer.stream.send_eof()
        while await peer.stream.receive_some(1 << 20):
            pass

    async with opened(serve) as (raw, channels):
        response = await channels.send(post(raw, b"x" * 5_000_000), None)
        assert (response.status, await whole(response)) == (413, b"no")


async def test_who_does_not_wait_any_longer_leaves() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.stream.send_all(HEAD + b"content-length: 4\r\n\r\nok")
        await peer.request()

    async with opened(serve) as (raw, channels):
        with trio.CancelScope() as scope:
            response = await channels.send(post(raw), None)
            assert await response.chunk() == b"ok"
            scope.cancel()
            try:
                await response.chunk()
            finally:
                await response.aclose()  # noqa: ASYNC102 - as all do
        await raw.peers[0].left.wait()


EVENTS = HEAD + b"transfer-encoding: chunked\r\n\r\n4\r\nit\n\n\r\n"


@pytest.mark.parametrize(
    ("rest", "is_reused"),
    [
        (b"0\r\n\r\n", True),
        (b"2\r\nok\r\n0\r\n\r\n", True),
        (b"", False),
        (b"2\r\n", False),
        (b"2\r\nok\r\n", False),
        (b"0\r\n", False),
        (b"no chunk", False),
        (b"0\r\n\r\n" + OK, False),
        (b"0\r\n\r\nno", False),
    ],
)
async def test_where_the_end_of_a_stream_has_come_meanwhile_something_else_is_asked(
    rest: bytes, is_reused: bool
) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        await peer.stream.send_all(EVENTS)
        await is_left.wait()
        await peer.stream.send_all(rest)
        await answers(peer)

    is_left = trio.Event()
    async with opened(serve) as (raw, channels):
        response = await channels.send(post(raw), None)
        assert await response.chunk() == b"it\n\n"
        response.leave()
        await response.aclose()
        is_left.set()
        await wait_all_tasks_blocked(0.01)
        if is_reused:
            assert await ask(raw, channels) == b"ok"
            assert len(raw.peers) == 1
        else:
            other = await channels.send(post(raw), None)
            assert await other.chunk() == b"it\n\n"
            await raw.peers[0].left.wait()
            await other.aclose()


@pytest.mark.parametrize("said", [b"HTTP/1.1 100 Continue\r\n\r\n", b"", b"\r\n"])
async def test_who_waits_for_a_head_that_does_not_come_can_give_up(said: bytes) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        for _ in range(100):
            await peer.stream.send_all(said)
        is_said.set()
        await peer.request()

    is_said = trio.Event()
    async with opened(serve) as (raw, channels):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(channels.send, post(raw), None)
            await is_said.wait()
            nursery.cancel_scope.cancel()
        await raw.peers[0].left.wait()


async def test_as_many_are_kept_as_may_be_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    async with opened(answers) as (raw, channels):

        async def five() -> list[Received]:
            return [await channels.send(post(raw), None) for _ in range(5)]

        for response in await five():
            assert await whole(response) == b"ok"
        for peer in raw.peers[2:]:
            await peer.left.wait()
        for response in await five():
            await whole(response)
        assert len(raw.peers) == 5 + 3
        monkeypatch.setattr(module, "IDLE", 0)
        await ask(raw, channels)
        assert len(raw.peers) == 5 + 3 + 1


async def test_those_that_nobody_needs_any_more_are_closed_beside_one_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(answers) as (raw, channels):
        several = [await channels.send(post(raw), None) for _ in range(4)]
        start, steps = time.monotonic(), itertools.count()
        monkeypatch.setattr(time, "monotonic", lambda: start + next(steps) * module.IDLE / 3.5)
        for response in several:
            await whole(response)
        assert await ask(raw, channels) == b"ok"
        await raw.peers[0].left.wait()
        assert [peer.left.is_set() for peer in raw.peers] == [True, False, False, False]


async def test_nothing_is_kept_when_all_is_over() -> None:
    async with opened(answers) as (raw, channels):
        response = await channels.send(post(raw), None)
        await ask(raw, channels)
        channels.close()
        await whole(response)
        for peer in raw.peers:
            await peer.left.wait()
        assert len(raw.peers) == 2


@pytest.mark.parametrize("count", [MANY - 1, MANY])
async def test_others_run_before_very_many_headers_are_looked_at_again(count: int) -> None:
    async def serve(peer: Peer) -> None:
        await answers(peer, HEAD + b"x: y\r\n" * count + b"content-length: 2\r\n\r\nok")

    steps: list[int] = []

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            if task is me:
                steps.append(1)

    me = trio.lowlevel.current_task()
    async with opened(serve) as (raw, channels):
        await ask(raw, channels)
        trio.lowlevel.add_instrument(counting := Steps())
        await ask(raw, channels)
        trio.lowlevel.remove_instrument(counting)
    assert len(steps) == 1 + (count == MANY)
