"""An ASGI app that a test can have do what apps do: answer, wait, stream, not read, not end."""

from __future__ import annotations

import attrs
import trio

from emceepee_trio.serving.asgi import Message, Receive, Scope, Send
from emceepee_trio.web.wire import ClientGone, read_body, send_bytes

GET = "GET / HTTP/1.1\nHost: x"


@attrs.define(eq=False)
class App:
    """Answers with the body it got; what else depends on the path."""

    size: int = 3_000_000
    gone: trio.Event = attrs.field(factory=trio.Event)
    """Somebody's client has gone."""
    busy: trio.Event = attrs.field(factory=trio.Event)
    """Somebody is being served."""
    go_on: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["path"]:
            case "/deaf":
                self.busy.set()
                await self.go_on.wait()
                await send_bytes(send, 401)
            case "/endless":
                await self.endless(receive, send)
            case "/wait":
                await read_body(receive, self.size)
                self.busy.set()
                await self.go_on.wait()
                await send_bytes(send, 200, b"waited")
            case "/forever":
                self.busy.set()
                await disconnected(receive)
                self.gone.set()
            case "/crash":
                raise ValueError("a bug")
            case "/large":
                self.busy.set()
                await send_bytes(send, 200, b"x" * self.size)
            case _:
                await self.echo(receive, send)

    async def echo(self, receive: Receive, send: Send) -> None:
        try:
            await send_bytes(send, 200, await read_body(receive, 1_000_000))
        except ClientGone:
            self.gone.set()

    async def endless(self, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:

            async def stop_when_gone() -> None:
                await disconnected(receive)
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop_when_gone)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                self.busy.set()
                piece: Message = {
                    "type": "http.response.body",
                    "body": b"x" * 65536,
                    "more_body": True,
                }
                await send(piece)
        self.gone.set()


async def disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
