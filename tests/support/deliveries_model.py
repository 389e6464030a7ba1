"""What a client is told of events, and a server in memory whose calls end when they shall."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import attrs

from asgi_client import Client, Exchange
from emceepee_trio.backend.reconciliation import LostWork
from emceepee_trio.config import Server
from emceepee_trio.model import events
from emceepee_trio.model.events import Happening
from emceepee_trio.session.session import Session
from emceepee_trio.waits.slot import Slot

T = TypeVar("T")

METHOD = "notifications/vendor"


def happen(client: Client, *numbers: int) -> None:
    """Events with these numbers."""
    happen_in(client.own.session, *numbers)


def happen_in(session: Session, *numbers: int) -> None:
    for number in numbers:
        session.notified("files", METHOD, {"n": number})


LIFE: list[Happening] = [
    events.ProcessCrashed("files", 1),
    events.ServerDisconnected("files", "lost", False),
    events.Restarting("files", 1, 1),
    events.ProcessStarted("files", 2),
    events.Restarted("files", 2, 1),
    events.ServerReconnected("files", {}, "v", "restart", 1, True, True, True, 0, 0, 0),
]
"""Of a program that crashes and is back."""


def live(client: Client, *steps: int) -> None:
    """Some of that, which is told as one where an answer has both ends."""
    for step in steps:
        client.own.session.publish("files", LIFE[step])


def lived(messages: Iterable[Any]) -> int:
    """How much of it these responses tell of."""
    count = 0
    for event in _events(messages):
        if event["server"] == "files" and event["type"] != "notification":
            count += 1 + sum(event["data"].get("incident", {"events": {}})["events"].values())
    return count


def told(messages: Iterable[Any]) -> list[int]:
    """The numbers of the events that these responses tell of, in their order."""
    noticed = [e["data"] for e in _events(messages) if e["type"] == "notification"]
    return [data["params"]["n"] for data in noticed if data["method"] == METHOD]


def _events(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for message in messages:
        for block in message.get("result", {}).get("content", ()):
            said = json.loads(block["text"]) if block["text"].startswith("{") else {}
            assert "events_lost" not in said
            for group in said.get("events", ()):
                yield from group["events"]
            yield from said.get("events_since_last_response", ())


def handed(exchange: Exchange) -> list[Any]:
    """What the transport was given, whether its client has got it or was gone."""
    lost = bytes(exchange.swallowed)
    if lost.startswith(b"{"):
        return [json.loads(lost)]
    lines = [line.removeprefix(b"data: ") for line in lost.split(b"\n")]
    return exchange.messages + [json.loads(line) for line in lines if line.startswith(b"{")]


@attrs.define(eq=False)
class Asked:
    """A request, and every connection that has brought something of its stream."""

    id: int
    exchange: Exchange
    """The newest of them."""
    begun: float
    earlier: list[Exchange] = attrs.field(factory=list)
    is_cancelled: bool = False
    call: Call | None = None
    numbers: list[int] | None = None
    """What its answer tells, once there is one."""
    lived: int = 0
    """And of the server's life."""

    @property
    def is_open(self) -> bool:
        return not self.exchange.is_dropped and not self.exchange.is_complete

    @property
    def ids(self) -> list[str]:
        exchanges = [*self.earlier, self.exchange]
        return [event.id for exchange in exchanges for event in exchange.events if event.id]

    def look(self) -> None:
        for exchange in [*self.earlier, self.exchange]:
            for message in handed(exchange):
                if message.get("id") == self.id and "result" in message:
                    numbers = told([message])
                    assert numbers == sorted(numbers)
                    assert self.numbers in (None, numbers), "one answer that tells different things"
                    self.numbers, self.lived = numbers, lived([message])


@attrs.define(eq=False)
class Call:
    done: Slot[dict[str, Any]] = attrs.field(factory=Slot)

    def end(self, text: str) -> None:
        self.done.set({"content": [{"type": "text", "text": text}]})


@attrs.define(eq=False)
class Memory:
    """A backend, as far as execute_tool looks at it; `args` say which call is which."""

    calls: dict[str, Call] = attrs.field(factory=dict)
    server: Server = attrs.field(factory=lambda: Server("memory", command="none"))
    is_modern: bool = False
    has_tasks: bool = False
    lost_with: LostWork = attrs.field(factory=LostWork)

    @property
    def catalog(self) -> Memory:
        return self

    @property
    def negotiated(self) -> Memory:
        return self

    def allows(self, tool: str) -> bool:
        return True

    async def ask(self, exchange: Callable[[Memory], Awaitable[T]]) -> T:
        return await exchange(self)

    async def request(
        self, method: str, params: Mapping[str, Any], **how: object
    ) -> dict[str, Any]:
        call = self.calls.setdefault(params["arguments"]["key"], Call())
        return await call.done.wait_result()
