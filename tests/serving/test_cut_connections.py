"""Over real sockets and our own listeners: whatever is cut, nothing is lost or doubled."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from asgi_client import BOTH, DONE, HELLO, LATEST, request
from asgi_world import Speaker, World, open_world, texts
from deliveries_model import happen_in, told
from emceepee_trio.session.session import Session
from raw_http import GUARD, Answer, Peer, Served, serving

RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: close without a good-bye."""


@attrs.define(eq=False)
class Followed:
    """A request whose stream is read over any number of connections."""

    client: Handmade
    id: int
    peer: Peer | None
    last_event_id: str = ""
    messages: list[Any] = attrs.field(factory=list)

    async def read(self) -> bool:
        """The next event of the connection; False if it is the last."""
        assert self.peer is not None
        await self.peer.until(b"\nid: ")
        self.last_event_id = (await self.peer.until(b"\n")).decode().strip()
        await self.peer.until(b"data: ")
        data = await self.peer.until(b"\n")
        if data.strip():
            self.messages.append(json.loads(data))
        return not self.is_answered

    @property
    def is_answered(self) -> bool:
        return any("id" in message for message in self.messages)

    async def cut(self, *, is_reset: bool) -> None:
        if self.peer is not None:
            if is_reset:
                self.peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            await self.peer.stream.aclose()
            self.peer = None

    async def come_back(self) -> None:
        """Perhaps while there is a connection still, which it takes over."""
        self.peer = await self.client.send("GET", "", f"Last-Event-ID: {self.last_event_id}\n")
        await self.read()  # what says where it goes on

    async def rest(self) -> None:
        await self.come_back()
        while not self.is_answered and await self.read():
            pass
        assert self.peer is not None
        await self.peer.until(b"0\r\n\r\n")  # it ends as a response should


@attrs.define(eq=False)
class Handmade:
    """A client of the handshake era that writes its requests by hand."""

    served: Served
    nursery: trio.Nursery
    session: str = ""
    ids: int = 0

    async def send(self, method: str, body: str, more: str = "") -> Peer:
        """Each on a connection of its own, closed at the end of the test unless before."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.served.port)
        self.nursery.start_soon(_close_at_the_end, stream)
        peer = Peer(stream)
        await peer.send(
            f"{method} /mcp HTTP/1.1\nHost: x\nAccept: {BOTH}\n{self.session}{more}"
            f"Content-Type: application/json\nContent-Length: {len(body)}\n\n{body}"
        )
        return peer

    async def join(self) -> str:
        hello = request(0, "initialize", protocolVersion=LATEST, **HELLO)
        session = (await self.answer(hello)).headers["mcp-session-id"]
        self.session = f"Mcp-Session-Id: {session}\n"
        assert (await self.answer(DONE)).status == 202
        return session

    async def answer(self, message: Any) -> Answer:
        return await (await self.send("POST", json.dumps(message))).answer()

    async def follow(self, method: str, **params: Any) -> Followed:
        """Ask for something whose answer takes so long that it comes in a stream."""
        self.ids += 1
        peer = await self.send("POST", json.dumps(request(self.ids, method, **params)))
        followed = Followed(self, self.ids, peer)
        await followed.read()
        return followed

    async def call(self, tool: str, **arguments: Any) -> list[Any]:
        """The messages of a tool's response."""
        self.ids += 1
        params = {"name": tool, "arguments": arguments}
        peer = await self.send("POST", json.dumps(request(self.ids, "tools/call", **params)))
        head = (await peer.until(b"\r\n\r\n")).decode().lower()
        if "text/event-stream" not in head:
            size = int(head.split("content-length: ")[1].split("\r\n")[0])
            while len(peer.came) < size:
                assert await peer.more()
            return [json.loads(peer.take(size))]
        followed = Followed(self, self.ids, peer)
        while await followed.read():
            pass
        return followed.messages


async def _close_at_the_end(stream: trio.SocketStream) -> None:
    async with stream:
        await trio.sleep_forever()


@attrs.define(eq=False)
class Scene:
    """A stream that is spoken on, a wait for events, and what cuts their connections."""

    spoken: Followed
    speaker: Speaker
    waiting: Followed
    session: Session
    said: list[str] = attrs.field(factory=list)
    happened: int = 0

    async def say(self, count: int) -> None:
        for _ in range(count):
            self.said.append(str(len(self.said)))
            await self.speaker.say(self.said[-1])

    async def happen(self, count: int) -> None:
        for _ in range(count):
            self.happened += 1
            happen_in(self.session, self.happened)

    async def read(self, count: int) -> None:
        """As far as there is somebody to read and something to come."""
        for _ in range(count):
            unread = len(self.said) - len(self.spoken.messages)
            if self.spoken.peer is not None and unread:
                await self.spoken.read()

    async def pause(self, count: int) -> None:
        """So that the server may or may not have noticed what was before."""
        await trio.sleep(count / 1000)

    async def cut(self, followed: Followed, count: int) -> None:
        await followed.cut(is_reset=count == 1)

    async def come_back(self, followed: Followed, count: int) -> None:
        if not followed.is_answered:
            await followed.come_back()

    def step(self, name: str, count: int) -> Callable[[], Awaitable[None]]:
        steps: dict[str, Callable[[], Awaitable[None]]] = {
            "say": lambda: self.say(count),
            "happen": lambda: self.happen(count),
            "read": lambda: self.read(count),
            "pause": lambda: self.pause(count),
            "cut what is spoken": lambda: self.cut(self.spoken, count),
            "cut the wait": lambda: self.cut(self.waiting, count),
            "come back for what is spoken": lambda: self.come_back(self.spoken, count),
            "come back for the wait": lambda: self.come_back(self.waiting, count),
        }
        return steps[name]


STEPS = [
    *("say", "happen", "read", "pause", "cut what is spoken", "cut the wait"),
    *("come back for what is spoken", "come back for the wait"),
]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 3)), max_size=25))
def test_who_comes_back_gets_everything_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    trio.run(_cut_and_resumed, steps)


async def _cut_and_resumed(steps: list[tuple[str, int]]) -> None:
    async with open_world(guard=GUARD) as world, trio.open_nursery() as nursery:
        async with serving(app(world)) as served:
            client = Handmade(served, nursery)
            session = world.manager.get(await client.join())
            assert session is not None
            spoken = await client.follow("test/speak", key="k")
            wait = {"name": "await_activity", "arguments": {"timeout_ms": 900_000}}
            waiting = await client.follow("tools/call", **wait)
            scene = Scene(spoken, await world.speaker("k"), waiting, session)
            for name, count in steps:
                await scene.step(name, count)()
            scene.speaker.answer("over")
            await spoken.rest()
            assert texts(spoken.messages) == [*scene.said, "over"]
            await scene.happen(1)  # there is at least one to wait for
            if not waiting.is_answered:
                await waiting.rest()
            numbers = told(waiting.messages)
            while len(numbers) < scene.happened:
                numbers += told(await client.call("await_activity", timeout_ms=60_000))
            assert sorted(numbers) == list(range(1, scene.happened + 1))
            nursery.cancel_scope.cancel("end of the test")


def app(world: World) -> Any:
    async def endpoint(scope: Any, receive: Any, send: Any) -> None:
        await world.endpoint(scope, receive, send, "local")

    return endpoint
