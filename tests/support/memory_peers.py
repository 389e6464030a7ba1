"""All backends' peers in memory, opened as a test wants: they greet, wait, fail or hang.

Or they have a part in a play, behind the real parser of lines: :func:`scripted` puts those in the
place of every transport, so no process is started and no network used, whatever a configuration or
a client names; time may jump.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any
from unittest import mock

import anyio
import attrs
from mcp.shared.message import SessionMessage

import scripted_peer
from emceepee_trio.backend.children import lines
from emceepee_trio.backend.connections import connect
from emceepee_trio.backend.connections.callbacks import Callbacks
from emceepee_trio.backend.connections.connect import Transport
from emceepee_trio.backend.connections.messages import parse
from emceepee_trio.config import Server
from emceepee_trio.model.json.intake import Measure, finished
from play import Part, Play
from scripted_peer import Openings, open_peer


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
class Peers(Openings[Peer]):
    is_well: bool = True
    on_call: Callable[[Peer, int], object] = lambda peer, request_id: None

    def open(self, fits: Callable[[Peer], object] = lambda _: True) -> list[Peer]:
        return [peer for peer in self.all if peer.is_open and fits(peer)]

    def new(
        self, server: Server, session: str, number: int, *, greets: bool
    ) -> Callable[..., Peer]:
        return partial(
            Peer,
            server=server,
            is_well=self.is_well,
            greets=greets,
            is_modern=server.era == "modern",
            on_call=self.on_call,
        )


@attrs.define(eq=False, kw_only=True)
class Player(scripted_peer.Peer):
    """One that has a part in a play."""

    part: Part
    callbacks: Callbacks
    measure: Measure

    async def listen(self) -> None:
        # Either end may be closed at any time: by the client, or because a line was too long.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            for line in self.part.play.instead.get("start", ()):
                await self.write(line)
            async for item in self.hears:
                message = item.message.model_dump(by_alias=True, exclude_unset=True)
                for said in self.part.hear(message):
                    await self.write(said.line)

    async def write(self, line: bytes) -> None:
        """As a program does, which ends when it says too much."""
        for part in line.split(b"\n"):
            if len(part) > self.measure.size:
                self.says.close()
                return
            said = finished(parse(part, self.measure))
            if said.why_not is not None:
                self.callbacks.made_noise(lines.text(part))
            for message in said.messages:
                await self.says.send(SessionMessage(message))


@contextmanager
def scripted(play: Play | None = None) -> Generator[Play]:
    """Until the block is left, the server named `bad` plays that, and all others are honest."""
    play, honest = play or Play(), Play()

    @asynccontextmanager
    async def open_streams(
        server: Server, callbacks: Callbacks, _: object, __: str, measure: Measure, ___: bool
    ) -> AsyncGenerator[Transport]:
        part = Part(play if server.name == "bad" else honest)
        new = partial(Player, part=part, callbacks=callbacks, measure=measure)
        async with open_peer(server, None, new, room=100) as (_peer, streams):
            yield streams

    with mock.patch.object(connect, "_open_streams", open_streams):
        yield play
