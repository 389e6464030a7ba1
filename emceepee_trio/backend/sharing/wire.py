"""What one shared connection receives, and what is common to all who speak on it.

Whose a question is, or a log message: the stream says it that it came on, or the task that it
names. If nothing does, and one lease alone has something under way, it is that one's. Otherwise
nobody is asked, and the server is split. A request that was cancelled may still be worked on until
it is answered, so as long it counts as under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import attrs
import trio
from mcp import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import INTERNAL_ERROR

from ...errors import ToolError, internal
from ...model.protocol.levels import LEVELS
from ..connections.callbacks import LIST_CHANGED, Abandoned, Callbacks, Params
from ..connections.client import DEFAULT_LOG_LEVEL, Client
from .client import LeasedClient

if TYPE_CHECKING:
    from ...model.facts import Unanswerable
    from .hub import Hub
    from .lease import Lease

QUESTIONS: Mapping[str, Unanswerable] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
}
NOBODY = (
    "sessions share this server, and nobody can say of which of their requests this question is; "
    "nobody was asked"
)
"""To a server."""
DOUBTS = 1000
"""Requests that were given up and not answered; with more, whose they were is at work for good."""
RELATED_TASK = "io.modelcontextprotocol/related-task"
UPDATED = "notifications/resources/updated"
PAGE_DONE = "notifications/elicitation/complete"


@attrs.define(eq=False, repr=False)
class Wire(Callbacks):
    """The receiving side of one shared connection."""

    hub: Hub = attrs.field(kw_only=True)
    common: Client | None = attrs.field(default=None, init=False)
    """Once it works."""
    clients: dict[Lease, LeasedClient] = attrs.field(factory=dict, init=False)
    told_roots: list[dict[str, Any]] | None = attrs.field(default=None, init=False)
    """What the server believes, if it has asked."""
    _level: str | None = attrs.field(default=None, init=False)
    """Of logs, that the server was told."""
    _followed: set[str] = attrs.field(factory=set, init=False)
    """Resources of which the server was told so."""
    _changing: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """Held while it is told something of those."""
    _doubts: dict[int, LeasedClient] = attrs.field(factory=dict, init=False)
    _doubted: set[LeasedClient] = attrs.field(factory=set, init=False)
    """For good."""

    def works(self, common: Client) -> None:
        """It is connected; what is wanted of it by then, it is told."""
        self.common = common
        self._level = self.hub.backend.preferences.log_level
        self._followed = set(self.hub.backend.preferences.subscribed())

    def client_of(self, lease: Lease, common: Client) -> LeasedClient:
        found = self.clients.get(lease)
        if found is None:
            found = self.clients[lease] = LeasedClient.of(lease, self, common)
        return found

    def is_lost(self) -> None:
        """Nobody can ask anything on it any more."""
        for client in self.clients.values():
            client.over.set()

    def drop(self, lease: Lease) -> list[str]:
        """It is given back; tasks of the server that go on for it."""
        client = self.clients.pop(lease, None)
        if client is None:
            return []
        client.end()
        return client.tasks.open

    def place_for(self, lease: Lease) -> AbstractAsyncContextManager[None]:
        places = self.hub.places
        return nullcontext() if places is None else places.one(lease)

    # Whose it is.

    def doubts(self, request_id: int, client: LeasedClient) -> None:
        """That the server has stopped to work on it."""
        assert self.common is not None
        given_up = self.common.witness.given_up
        self._doubts = {id_: each for id_, each in self._doubts.items() if id_ in given_up}
        if len(self._doubts) < DOUBTS:
            self._doubts[request_id] = client
            given_up.add(request_id)
        else:
            self._doubted.add(client)

    def _whose(self, related: str | int | None, params: Any) -> LeasedClient | None:
        """Of those who have something under way, if it can be known."""
        if related is not None:
            return self._of_request(related)
        if (named := _related_task(params)) is not None:
            return next((each for each in self.clients.values() if named in each.tasks), None)
        at_work = {client for client in self.clients.values() if client.is_at_work}
        if self.common is not None:
            given_up = self.common.witness.given_up
            at_work |= {each for id_, each in self._doubts.items() if id_ in given_up}
        at_work |= self._doubted
        if not at_work and self.common is not None and (alone := self.hub.alone) is not None:
            return self.client_of(alone, self.common)
        whose = at_work.pop() if len(at_work) == 1 else None
        return whose if whose is not None and whose.lease in self.clients else None

    def _of_request(self, related: str | int) -> LeasedClient | None:
        of = (c for c in self.clients.values() if related in c.callbacks.calls)
        return next(of, None)

    async def answer_to(
        self,
        related: str | int | None,
        method: str,
        params: Params | None,
        abandoned: Callable[[], Abandoned],
    ) -> dict[str, Any]:
        if method == "roots/list":
            with self._wall("question_crashed", method, MCPError) as wall:
                if (client := self._whose(related, params)) is not None:
                    # Some say what they are only if they are asked.
                    await client.answer(related, method, params, abandoned)
                return {"roots": self._roots()}
            raise MCPError(code=INTERNAL_ERROR, message=internal(str(wall.log_id)))
        if method not in QUESTIONS:
            return await super().answer_to(related, method, params, abandoned)
        with self._wall("question_crashed", method, MCPError) as wall:
            client = self._asked(related, method, params)
            return await client.answer(related, method, params, abandoned)
        raise MCPError(code=INTERNAL_ERROR, message=internal(str(wall.log_id)))

    def _asked(self, related: str | int | None, method: str, params: Any) -> LeasedClient:
        client = self._whose(related, params)
        if client is not None:
            return client
        if related is None and _related_task(params) is None and self.common is not None:
            self.hub.split(QUESTIONS[method])
        # Else it is of something that is over, or that no lease has asked for.
        raise MCPError(code=INTERNAL_ERROR, message=NOBODY)

    def _roots(self) -> list[dict[str, Any]]:
        """Those of all, if they are the same."""
        roots = self.hub.common_roots()
        if roots is None:
            self.hub.split("roots")
            raise MCPError(
                code=INTERNAL_ERROR,
                message="sessions share this server, and have different roots; it is told none",
            )
        self.told_roots = roots
        return roots

    # What it says of its own accord.

    def _heard(self, method: str, params: Params | None) -> None:
        if method in LIST_CHANGED or method == "notifications/progress":
            super()._heard(method, params)  # of everybody; of who has the token
            return
        with self.hub.audience.speaking_to(self._listeners(method, params or {})):
            super()._heard(method, params)

    def _listeners(self, method: str, said: Params) -> list[Lease]:
        if method == UPDATED:
            uri = said.get("uri")
            return [each for each in self.hub.here if _follows(each, uri)]
        clients = self.clients.values()
        if method == PAGE_DONE:
            named = said.get("elicitationId")
            return [client.lease for client in clients if named in client.pages]
        if method.startswith("notifications/tasks"):
            named = said.get("taskId")
            return [client.lease for client in clients if named in client.tasks]
        about = None if self.common is None else self.common.witness.about
        related = about.related_request_id if isinstance(about, ServerMessageMetadata) else None
        client = None if related is None else self._of_request(related)
        if client is not None:
            return [client.lease]
        return self.hub.here if self.hub.server.share_logs else []

    # What is common.

    async def subscribe(self, client: LeasedClient, params: Params) -> dict[str, Any]:
        uri = params.get("uri")
        async with self._changing:
            if uri in self._followed:
                return {}
            result = await client.tell("resources/subscribe", params)
            if isinstance(uri, str):
                self._followed.add(uri)
            return result

    async def unsubscribe(self, client: LeasedClient, params: Params) -> dict[str, Any]:
        """Of a resource that this lease does not follow any more; perhaps others do."""
        uri = params.get("uri")
        async with self._changing:
            if uri in self.hub.backend.preferences.subscribed():
                return {}
            if isinstance(uri, str):
                self._followed.discard(uri)
            return await client.tell("resources/unsubscribe", params)

    async def tidy(self, tasks: list[str]) -> None:
        """What nobody wants any more, since a lease was given back: those, and resources."""
        # It may refuse, or be lost meanwhile; what it tells of those, nobody is told.
        for task in tasks:
            with suppress(MCPError):
                await self._common().request("tasks/cancel", {"taskId": task})
        with suppress(MCPError, ToolError, TimeoutError):
            await self._follow_no_more()

    def _common(self) -> Client:
        assert self.common is not None  # somebody had it
        return self.common

    async def _follow_no_more(self) -> None:
        if self._common().negotiated.is_modern:
            await self.hub.backend.follow_changes()  # nothing, if they are the same
            return
        async with self._changing:
            for uri in sorted(self._followed - self.hub.backend.preferences.subscribed()):
                self._followed.discard(uri)
                await self._common().request("resources/unsubscribe", {"uri": uri})

    async def set_level(self, client: LeasedClient, params: Params) -> dict[str, Any]:
        """The most verbose of all is what the server is told; each hears what it has asked for."""
        async with self._changing:
            level = loudest([params.get("level"), *self.hub.levels(but=client.lease)])
            if level == self._level:
                return {}
            result = await client.tell("logging/setLevel", {**params, "level": level})
            self._level = self.hub.backend.preferences.log_level = level
            return result


def loudest(levels: list[Any]) -> Any:
    """The one of which most is heard; who has chosen none gets what is usual."""
    chosen = [DEFAULT_LOG_LEVEL if level is None else level for level in levels]
    return min(chosen, key=lambda level: LEVELS.index(level) if level in LEVELS else 0)


def _follows(lease: Lease, uri: Any) -> bool:
    """It, or something that it is a part of."""
    followed = lease.preferences.subscribed()
    if not isinstance(uri, str):
        return False
    return uri in followed or any(
        uri.startswith(each) and (each.endswith("/") or uri[len(each)] in "/?#")
        for each in followed
    )


def _related_task(params: Any) -> Any:
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    task = meta.get(RELATED_TASK) if isinstance(meta, Mapping) else None
    return task.get("taskId") if isinstance(task, Mapping) else None
