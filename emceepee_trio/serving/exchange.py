"""The requests of one connection, one after the other, and the answers of an app.

One task reads a request, runs the app and writes its answer, then reads the next one. While an app
runs nobody reads but the app itself, which asks for the body, or for the end of the connection.
"""

from __future__ import annotations

import trio

from .. import logs
from ..waits.firewall import Firewall
from .answers import CONTINUE, Answer, BadAnswer
from .asgi import GONE, App, Message, Scope
from .connection import CHUNK, Connection, Phase
from .requests import BadRequest, RequestHead


async def serve_requests(connection: Connection, app: App) -> None:
    """Until one of both sides has had enough."""
    try:
        with Firewall("connection_crashed"):
            client, server = connection.addresses()
            while not connection.is_last and (request := await connection.next()) is not None:
                scope = request.scope(client, server)
                await HttpExchange(connection, request).run(app, scope)
                connection.enter(Phase.IDLE)
                if connection.requests.waiting:
                    await trio.lowlevel.checkpoint()  # others want their turn as well
            await connection.hang_up()
    finally:
        connection.cut()


class HttpExchange:
    """One request and its answer: what the app is given."""

    def __init__(self, connection: Connection, request: RequestHead) -> None:
        self._connection = connection
        self._requests = connection.requests
        self._answer = Answer(request)
        self._body = b""
        """What has come of the request's, and the app has not asked for."""
        self._is_asked_for = not request.expects
        self._is_read = False
        """The app has all of it, or will never."""
        self._is_closed = False
        """Nothing more is written of the answer."""

    async def run(self, app: App, scope: Scope) -> None:
        try:
            self._body = self._requests.body()
        except BadRequest as bad:
            await self._refuse(bad.status)
            return
        scope["extensions"][GONE] = self.is_gone
        await app(scope, self.receive, self.send)
        self._connection.is_last |= self._answer.is_last
        if self._answer.is_complete or self._is_closed:
            return
        if self._answer.has_begun or self._connection.is_deaf:
            self._connection.cut()  # half of it, or nobody to hear that there is none
        else:
            await self._refuse(500)

    async def receive(self) -> Message:
        """The body, as it comes; then nothing until the peer is gone, or has its answer."""
        try:
            while not self._is_read:
                body, self._body = self._body, b""
                self._is_read = self._requests.is_whole
                if self._is_read:
                    self._connection.enter(Phase.ANSWER)
                if body or self._is_read:
                    return {"type": "http.request", "body": body, "more_body": not self._is_read}
                await self._more()
        except BadRequest as bad:
            self._is_read = True
            await self._refuse(bad.status)
        if self._is_over:
            await trio.lowlevel.checkpoint()  # an app may ask for ever
        while not self._is_over:
            if self._requests.waiting > CHUNK:
                await self._connection.over.wait()
            else:
                await self._connection.read()
        return {"type": "http.disconnect"}

    def is_gone(self) -> bool:
        """Whether the peer is, as far as anybody here can know. No checkpoint."""
        if not self._is_over and self._is_read and self._requests.waiting <= CHUNK:
            self._connection.hear()
        return self._is_over

    @property
    def _is_over(self) -> bool:
        is_gone = self._connection.is_deaf or self._connection.over.is_set()
        return is_gone or self._is_closed or self._answer.is_complete

    async def _more(self) -> None:
        """Of the body."""
        if not self._is_asked_for and not self._answer.has_begun:
            await self._connection.write(CONTINUE)
        self._is_asked_for = True
        self._connection.enter(Phase.BODY)
        if not await self._connection.read():
            raise BadRequest(400 if self._connection.is_deaf else 408)
        self._body = self._requests.body()

    async def send(self, message: Message) -> None:
        if self._is_closed or self._connection.over.is_set():
            # Or an app that does nothing but send would never hear that it should stop.
            await trio.lowlevel.checkpoint()
            return
        try:
            data = self._said(message)
        except BadAnswer as bug:
            logs.crash("answer_refused", bug)
            await self._refuse(500)
            return
        if data:
            await self._connection.write(data)
        if message.get("more_body"):
            await trio.lowlevel.cancel_shielded_checkpoint()  # it may have nothing else to wait for

    def _said(self, message: Message) -> bytes:
        match message["type"]:
            case "http.response.start":
                self._answer.start(message["status"], message.get("headers", ()))
                return b""
            case "http.response.body":
                # Nobody reads the rest of a request that is answered before its end.
                if self._connection.is_last or not self._requests.is_whole:
                    self._answer.is_last = True
                return self._answer.piece(
                    message.get("body", b""), more=message.get("more_body", False)
                )
            case other:
                raise BadAnswer(f"a message of the type {other!r} is part of none")

    async def _refuse(self, status: int) -> None:
        """Answer with an error, if nothing of an answer is written yet; say nothing more."""
        # Before the first checkpoint: the app may be about to answer.
        self._is_closed = True
        if self._answer.has_begun:
            self._connection.cut()
        else:
            await self._connection.refuse(status)
