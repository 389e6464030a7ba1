"""Sessions over HTTP in memory, their servers in memory, and what each side has seen."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import anyio
import attrs

from asgi_client import Client, Exchange
from emceepee_trio.backend.sharing.lease import Lease
from emceepee_trio.config import Server
from emceepee_trio.model.wire import event_json
from emceepee_trio.session.session import Session
from scripted_peer import Openings, Peer
from world_model import Call, Fact, Life, Question, fact_of


@attrs.define(eq=False)
class Host(Peer):
    """One connection to one server, of one session or of those that share it."""

    session: str = ""
    """Or what is noted in place of one, if sessions share it."""
    is_shared: bool = False
    server: str = ""
    number: int = 0
    answers: dict[int, list[dict[str, Any]]] = attrs.field(factory=dict)
    """What its questions were answered."""
    cancelled: set[str] = attrs.field(factory=set)
    """Keys of calls that it was told to stop."""
    keys: dict[int, str] = attrs.field(factory=dict)
    """Of every call that it has got, by the id of its request."""
    heard: str = ""
    asked: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    """Ids of its questions: the same ones in every connection."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.server}, connection {self.number}>")

    def hear(self, message: dict[str, Any]) -> None:
        self.heard += json.dumps(message)
        if "method" not in message:
            self.answers.setdefault(message["id"], []).append(message)
            return
        params = message.get("params") or {}
        if message["method"] == "tools/call":
            self.keys[message["id"]] = params["arguments"]["key"]
        if message["method"] == "notifications/cancelled":
            self.cancelled.add(self.keys[params["requestId"]])
        super().hear(message)

    def say(self, message: dict[str, Any], about: int | None = None) -> bool:
        try:
            super().say(message, about if self.is_shared else None)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return False  # it was lost, or left, a moment ago
        return True

    def request_of(self, key: str) -> int | None:
        """The id of that call, if it has no answer."""
        return next((i for i in self.of("tools/call") if self.keys[i] == key), None)

    def ask(self, kind: str, key: str, about: int | None = None) -> int:
        number = next(self.asked)
        method = "elicitation/create"
        params: dict[str, Any] = {"message": key, "requestedSchema": FORM}
        if kind == "sampling":
            text = {"role": "user", "content": {"type": "text", "text": key}}
            method, params = "sampling/createMessage", {"messages": [text], "maxTokens": 9}
        self.say({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, about)
        return number

    def notify(self, method: str, about: int | None = None, /, **params: Any) -> bool:
        said = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}
        return self.say(said, about)


LOOKS: dict[str, dict[str, Any]] = {
    "list_servers": {},
    "list_tasks": {"include_completed": True},
    "get_elicitations": {},
    "get_sampling_requests": {},
    "get_notifications": {},
    "get_logs": {},
    "get_roots": {},
    "list_timers": {"include_inactive": True},
    "list_tools": {},
    "get_server_status": {"server": "a"},
}
"""Tools that only show something, or give it away."""

FORM = {"type": "object", "properties": {"say": {"type": "string"}}}


@attrs.define(eq=False)
class Hosts(Openings[Host]):
    def new(
        self, server: Server, session: str, number: int, *, greets: bool
    ) -> Callable[..., Host]:
        return partial(
            Host,
            greets=greets,
            session=session,
            server=server.name,
            number=number,
            is_shared=server.scope == "principal",
        )


@attrs.define(eq=False)
class Held:
    """A request that may take its time."""

    id: int
    exchange: Exchange
    what: str
    call: Call | None = None
    until: float = 0.0
    is_cancelled: bool = False
    result: dict[str, Any] | None = None
    seen: int = 0

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.what} {self.id}>")

    @property
    def is_open(self) -> bool:
        return not self.exchange.is_complete


@attrs.define(eq=False)
class Place:
    """One session, as its client sees it."""

    client: Client
    session: Session
    life: Life
    held: list[Held] = attrs.field(factory=list)
    waits: bool = False
    """Before the step that is being made."""
    calls: list[Held] = attrs.field(factory=list)
    """Requests that began calls."""
    fetches: list[Held] = attrs.field(factory=list)
    """Those that wait for what has become of one."""
    drained: set[str] = attrs.field(factory=set)
    """Notifications that get_notifications has shown."""
    told: dict[str, Fact | None] = attrs.field(factory=dict)
    """Events by id, in the order in which they were told."""
    asked: dict[Question, tuple[Host, int, Any]] = attrs.field(factory=dict)
    """Who asks, under which id, and our question."""
    replies: list[tuple[str, Any, Held]] = attrs.field(factory=list)
    """What was said to questions and tasks, and how that was taken."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<place of {self.life.secret}>")

    def has(self, host: Host) -> bool:
        """It is one of its own, or one that it shares."""
        if not host.is_shared:
            return host.session == self.session.id
        lease = self.session.backends.get(host.server)
        return isinstance(lease, Lease) and lease.hub.id == host.session

    def start(
        self,
        what: str,
        name: str,
        call: Call | None = None,
        until: float = 0.0,
        /,
        **arguments: Any,
    ) -> Held:
        request_id = next(self.client.ids)
        exchange = self.client.request(
            "tools/call",
            request_id,
            name=name,
            arguments=arguments,
            _meta={"progressToken": request_id},
        )
        held = Held(request_id, exchange, what, call, until)
        self.held.append(held)
        if call is not None:
            (self.calls if what == "call" else self.fetches).append(held)
        return held

    def absorb(self, secrets: Iterable[str]) -> None:
        """Look at what has come: nothing of others, nothing twice."""
        tellings: list[list[dict[str, Any]]] = []
        for held in self.held:
            exchange = held.exchange
            for secret in secrets:
                assert secret.encode() not in exchange.body
            messages = exchange.messages
            for message in messages[held.seen :]:
                if "method" in message:
                    self._progress(held, message)
                else:
                    assert message["id"] == held.id
                    assert held.result is None
                    held.result = message.get("result", message)
                    if events := events_in(held.result):
                        tellings.append(events)
            held.seen = len(messages)
        self._learn(tellings)
        self.held = [held for held in self.held if held.is_open]

    @staticmethod
    def _progress(held: Held, message: dict[str, Any]) -> None:
        assert message["params"]["progressToken"] == held.id
        said = message["params"].get("message", "")
        if "key-" in said:
            assert held.call is not None
            assert said == held.call.key

    def _learn(self, tellings: list[list[dict[str, Any]]]) -> None:
        """What some answers told that came in one step; in which order they did, nobody knows."""
        for events in sorted(tellings, key=lambda events: str(events[0]["id"])):
            for event in events:
                assert event["id"] not in self.told, f"told twice: {event}"
                assert not self.told or event["id"] > next(reversed(self.told))
                self.told[event["id"]] = fact_of(event)

    def drain(self, held: Held) -> None:
        """Notifications are shown once."""
        keys = {n["params"]["key"] for n in blocks(held.result)[0]["notifications"]}
        assert not keys & self.drained
        self.drained |= keys

    def pending(self) -> list[Fact]:
        """Of events that nobody has been told of yet."""
        kept = [kept for kept in self.session.events._kept.values() if kept.is_pending]
        assert not {k.event.id for k in kept} & self.told.keys()
        facts = [fact_of(event_json(k.event)) for k in kept]
        return [fact for fact in facts if fact is not None]

    def fate_of(self, call: Call) -> str:
        """What has become of it, as its client sees it or could."""
        for task in self.session.calls.tasks():
            if task.args.get("key") == call.key:
                call.task_id = task.task_id
                return {"completed": "returned"}.get(task.status.value, task.status.value)
        if call.task_id is not None:
            assert not call.is_open
            return call.fate  # kept long enough
        (held,) = [h for h in self.calls if h.call is call]
        if held.result is None:
            return "in_flight" if held.is_open else "cancelled"
        return "failed" if held.result.get("isError") else "returned"


def blocks(result: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The JSON in a result."""
    texts = [block.get("text", "") for block in (result or {}).get("content", ())]
    found = [json.loads(text) for text in texts if text.startswith("{")]
    return [said for said in found if isinstance(said, dict)]


def events_in(result: dict[str, Any] | None) -> list[dict[str, Any]]:
    found = []
    for said in blocks(result):
        assert "events_lost" not in said
        groups = [group["events"] for group in said.get("events", ())]
        for group in [*groups, said.get("events_since_last_response", ())]:
            ids = [event["id"] for event in group]
            assert ids == sorted(ids)
            found += group
    return sorted(found, key=lambda event: str(event["id"]))


def code_of(result: dict[str, Any] | None) -> str | None:
    """Of an error of ours."""
    codes = [said["error"]["code"] for said in blocks(result) if "error" in said]
    return codes[0] if codes else None
