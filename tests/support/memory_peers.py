"""All backends' peers in memory, opened as a test wants: they greet, wait, fail or hang."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any, Literal, TypeAlias
from unittest import mock

import anyio
import attrs
import trio

import scripted_peer
from emceepee_trio.backend.connections import connect
from emceepee_trio.backend.connections.connect import Transport
from emceepee_trio.config import Server
from scripted_peer import open_peer

Mood: TypeAlias = Literal["greets", "waits", "fails", "hangs"]
"""What opening a transport does, and whether its peer says hello by itself."""


@attrs.define(eq=False, kw_only=True)
class Peer(scripted_peer.Peer):
    """One that keeps what it was told, and may answer calls by itself."""

    server: Server
    heard: list[dict[str, Any]] = attrs.field(factory=list)
    """Requests and notifications."""
    began: list[str] = attrs.field(factory=list)
    """Tools of all calls that ever came."""
    answers: list[dict[str, Any]] = attrs.field(factory=list)
    """To questions of ours."""
    cancelled: list[int] = attrs.field(factory=list)
    """Ids of requests that it was told to give up."""
    on_call: Callable[[Peer, int], object] = lambda peer, request_id: None

    def hear(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.answers.append(message)
            return
        self.heard.append(message)
        super().hear(message)
        if message["method"] == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
        elif message["method"] == "tools/call":
            params = message["params"]
            for number, answer in params.get("inputResponses", {}).items():
                self.answers.append({"id": int(number), "result": answer})
            if "inputResponses" not in params:  # else it goes on
                self.began.append(params["name"])
            self.on_call(self, message["id"])

    def say(self, message: dict[str, Any], about: int | None = None) -> bool:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            return super().say(message, about)
        return False

    def needs(self, request_id: int, number: int, method: str, params: Any) -> None:
        """What a modern server asks in the result of a call, which then goes on."""
        asked = {str(number): {"method": method, "params": params}}
        needed = {"resultType": "input_required", "inputRequests": asked}
        self.answer(request_id, {**needed, "requestState": f"state {number}"})

    def asked(self, *methods: str) -> list[Any]:
        """Params of all that it was ever told by those methods."""
        return [message.get("params") for message in self.heard if message["method"] in methods]


@attrs.define(eq=False)
class Peers:
    """Of all transports that are opened in :meth:`in_place`, in the order of their opening."""

    mood: Mood = "greets"
    """Of the next one."""
    is_well: bool = True
    on_call: Callable[[Peer, int], object] = lambda peer, request_id: None
    all: list[Peer] = attrs.field(factory=list, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)

    def open(self, fits: Callable[[Peer], object] = lambda _: True) -> list[Peer]:
        return [peer for peer in self.all if peer.is_open and fits(peer)]

    @contextmanager
    def in_place(self) -> Generator[None]:
        with mock.patch.object(connect, "_open_streams", self._open_streams):
            yield

    @asynccontextmanager
    async def _open_streams(self, server: Server, *_: object) -> AsyncGenerator[Transport]:
        mood, self.mood = self.mood, "greets"
        if mood == "hangs":
            await trio.sleep_forever()
        if mood == "fails":
            raise OSError(11, "cannot be opened today")
        new = partial(
            Peer,
            server=server,
            is_well=self.is_well,
            greets=mood == "greets",
            is_modern=server.era == "modern",
            on_call=self.on_call,
        )
        async with open_peer(server, next(self._numbers), new) as (peer, streams):
            self.all.append(peer)
            yield streams
