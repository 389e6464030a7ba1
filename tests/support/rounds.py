"""Clients of the modern era that are asked in rounds: what each wants, and what it was answered."""

from __future__ import annotations

import json
from typing import Any

import attrs
import trio

from asgi_client import META, Client, Exchange, Json

CAN: Json = {"elicitation": {}}
FORM = {"type": "object", "properties": {"by": {"type": "string"}}, "required": ["by"]}
INVALID_PARAMS = -32602
VIEWS = ("tools", "native", "one server")


def accepted(by: str) -> Json:
    return {"action": "accept", "content": {"by": by}}


@attrs.define(eq=False)
class Wanted:
    """One call of a client, over all the requests that it takes."""

    client: Client
    key: str
    """The name of the tool, which no other call has."""
    patience: int
    can: Json = attrs.field(factory=CAN.copy)
    exchanges: dict[Exchange, float] = attrs.field(factory=dict)
    """That are not answered, and when they began."""
    states: list[str] = attrs.field(factory=list)
    """All that its client has read."""
    asked: dict[str, str] = attrs.field(factory=dict)
    """What it was asked with the last: the messages, by the keys of the answers."""
    lost_at: float | None = None
    """When its client lost a stream that it has not sent again."""
    _lost_before: float | None = attrs.field(default=None, init=False)
    """The one that was sent again by what is under way."""
    results: list[Json] = attrs.field(factory=list)
    errors: list[Json] = attrs.field(factory=list)
    may_be_dead: bool = False
    """Its states may mean nothing any more."""
    may_run: int = 1
    """How often. Who has lost an answer that was written for it calls anew, as everybody does."""
    view: str = "tools"
    """In which it is made, of the server `x`."""

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"<{self.key}>")

    @property
    def is_over(self) -> bool:
        return bool(self.results or self.errors)

    def send(self, client: Client | None = None, **params: Any) -> Exchange:
        """Its request, or a retry. By somebody else, it is none of its own."""
        meta = {f"{META}clientCapabilities": self.can}
        there, query, said = self._as_its_view_has_it(client or self.client)
        exchange = there.modern("tools/call", query, meta=meta, **(said | params))
        if client is None:
            self.exchanges[exchange] = trio.current_time()
            self._lost_before, self.lost_at = self.lost_at, None
        return exchange

    def _as_its_view_has_it(self, client: Client) -> tuple[Client, str, Json]:
        """Who sends the request, the query of its URL, and the parameters."""
        match self.view:
            case "native":
                return client, "view=native", {"name": f"x__{self.key}", "arguments": {}}
            case "one server":
                there = attrs.evolve(client, path="/servers/x/mcp")
                return there, "", {"name": self.key, "arguments": {}}
        args = {"server": "x", "tool": self.key, "timeout_ms": self.patience * 1000}
        return client, "", {"name": "execute_tool", "arguments": args}

    def again(self, answers: Json | None = None, number: int = -1) -> Exchange:
        """With one of its states, if there is one."""
        if not self.states:
            return self.send()
        state = self.states[max(number, -len(self.states))]
        return self.send(requestState=state, inputResponses=answers or {})

    def drop(self) -> None:
        """Its client has lost what it waits for, and not what it has."""
        lost = [exchange for exchange in self.exchanges if not exchange.is_complete]
        for exchange in lost:
            exchange.drop()
            self.lost_at = trio.current_time()
            if self.exchanges[exchange] == self.lost_at and self._lost_before is not None:
                self.lost_at = self._lost_before  # perhaps nobody has looked at it

    def read(self) -> None:
        """What has come."""
        for exchange in [each for each in self.exchanges if each.is_complete or each.is_dropped]:
            del self.exchanges[exchange]
            if exchange.is_complete:
                self._take(exchange.messages[-1])
            elif exchange.swallowed:
                self.may_run += 1

    def _take(self, said: Json) -> None:
        if "error" in said:
            self.errors.append(said["error"])
        elif said["result"]["resultType"] == "input_required":
            state = said["result"]["requestState"]
            if state not in self.states:
                self.states.append(state)
            requests = said["result"]["inputRequests"]
            assert requests, "asked nothing"
            self.asked = {key: each["params"]["message"] for key, each in requests.items()}
        else:
            self.results.append(said["result"])

    @property
    def said(self) -> str:
        """All that it has come to."""
        return json.dumps([self.results, self.errors])
