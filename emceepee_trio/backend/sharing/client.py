"""How one lease speaks on the connection that it shares.

Requests go out by the common dispatcher under ids of a common counter, and all else is the
lease's: progress and questions of them, their cancellation, and an end of its own. What is not of
one session (lists, the level of logs, what is followed) is for the :class:`~.wire.Wire`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
import trio
from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from ..catalogue.catalog import SOURCES
from ..connections.callbacks import NO_CALL, Abandoned, Callbacks, Over, Params, as_work_for
from ..connections.client import Client
from ..connections.tasks import TERMINAL
from ..connections.witness import Unanswered
from .named import GivenNames

if TYPE_CHECKING:
    from .lease import Lease
    from .wire import Wire

LISTS = frozenset(source.method for source in SOURCES.values())
"""Are the same for everybody: nobody's."""
GONE = "the session does not have this server any more"
PAGES_FIRST = -32042
"""An error that names pages, whose end is told by their ids."""


@attrs.define(eq=False, repr=False)
class LeasedClient(Client):
    """A connection as one lease has it, until that is given back or the connection is over."""

    common: Client = attrs.field(kw_only=True)
    wire: Wire = attrs.field(kw_only=True)
    lease: Lease = attrs.field(kw_only=True)
    asking: int = attrs.field(default=0, init=False)
    """Requests under way that a question may be of."""
    tasks: GivenNames = attrs.field(factory=GivenNames, init=False)
    """Of the server, that calls of the lease have become, by their ids."""
    pages: GivenNames = attrs.field(factory=GivenNames, init=False)
    """Whose end the server may tell, likewise."""
    _mine: Over = attrs.field(init=False)
    _scopes: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """Of what is under way."""

    def __attrs_post_init__(self) -> None:
        self.speaks_with(self.common)
        self.on_answer = self._answered
        self._mine = Over(lambda: None)

    @classmethod
    def of(cls, lease: Lease, wire: Wire, common: Client) -> LeasedClient:
        callbacks = Callbacks(
            wire.server, lease.tenant, lambda name: None, wire.why_over, lambda: None, wire.using
        )
        callbacks.progress = wire.progress  # tokens are ids, and so of one request each
        if common.traced is not None:
            callbacks.traced = attrs.evolve(common.traced, session=lease.tenant.id)
        client = cls(
            common.dispatcher,
            callbacks,
            common.negotiated,
            common.witness,
            common.http,
            callbacks.traced,
            common=common,
            wire=wire,
            lease=lease,
        )
        client.log_level = lease.preferences.log_level or client.log_level
        return client

    def _answered(self) -> None:
        if self.common.on_answer is not None:
            self.common.on_answer()

    @property
    def over(self) -> Over:
        """The connection is, or the lease is given back."""
        return self._mine

    def end(self) -> None:
        """The lease is given back: what is under way is cancelled, also at the server."""
        self._mine.set()
        for scope in tuple(self._scopes):
            scope.cancel(GONE)

    @contextmanager
    def _until_end(self) -> Generator[None]:
        with trio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    async def request(
        self, method: str, params: Params | None = None, **how: Any
    ) -> dict[str, Any]:
        if method in LISTS:
            return await self.common.request(method, params, **how)
        match method:
            case "resources/subscribe":
                return await self.wire.subscribe(self, params or {})
            case "resources/unsubscribe":
                return await self.wire.unsubscribe(self, params or {})
            case "logging/setLevel":
                return await self.wire.set_level(self, params or {})
        if method.startswith("tasks/") and method != "tasks/list":
            self._check_task((params or {}).get("taskId"))
        return await super().request(method, params, **how)

    async def tell(self, method: str, params: Params) -> dict[str, Any]:
        """A request that changes what is common."""
        return await super().request(method, params)

    def _check_task(self, task: Any) -> None:
        if task not in self.tasks:
            raise MCPError(code=INVALID_PARAMS, message="Task not found")

    async def _exchange(self, method: str, params: Params | None, **how: Any) -> dict[str, Any]:
        if self._mine.is_set():
            raise Unanswered
        with self._until_end(), self.common.counted():
            async with self.wire.place_for(self.lease):
                self.asking += 1
                try:
                    result = await super()._exchange(method, params, **how)
                except MCPError as error:
                    self._learn_pages(error)
                    raise
                finally:
                    self.asking -= 1
                return self._learn_tasks(method, params or {}, result)
        raise Unanswered

    def _gave_up(self, request_id: int, method: str) -> None:
        self.wire.doubts(request_id, self)

    def _learn_pages(self, error: MCPError) -> None:
        data = error.error.data
        named = data.get("elicitations") if isinstance(data, Mapping) else None
        if error.error.code == PAGES_FIRST and isinstance(named, list):
            for page in named:
                self.learn_page(page)

    def learn_page(self, page: Any) -> None:
        if isinstance(page, Mapping):
            self.pages.add(page.get("elicitationId"))

    def _learn_tasks(self, method: str, params: Params, result: dict[str, Any]) -> dict[str, Any]:
        task = result if result.get("resultType") == "task" else result.get("task")
        if isinstance(task, Mapping):
            self.tasks.add(task.get("taskId"), is_open=task.get("status") not in TERMINAL)
        if method in {"tasks/result", "tasks/cancel"} or (
            method == "tasks/get" and result.get("status") in TERMINAL
        ):
            self.tasks.close(params.get("taskId"))
        if method == "tasks/list" and isinstance(tasks := result.get("tasks"), list):
            return {**result, "tasks": [t for t in tasks if _id_of(t) in self.tasks]}
        return result

    @property
    def is_at_work(self) -> bool:
        """A question of the server may be of something that it does for this lease."""
        return bool(self.asking) or bool(self.tasks.open)

    async def answer(
        self,
        related: str | int | None,
        method: str,
        params: Params | None,
        abandoned: Callable[[], Abandoned],
    ) -> dict[str, Any]:
        """What the server gets, which has asked something of a request of this lease.

        Raises:
            MCPError: what it gets instead.
        """
        self.learn_page(params)

        def why() -> Abandoned:
            return "server_removed" if self._mine.is_set() and not self.is_lost else abandoned()

        call = None if related is None else self.callbacks.calls.get(related, NO_CALL)
        with self._until_end(), as_work_for(call):
            return await self.callbacks.answer(method, params, why)
        raise MCPError(code=INTERNAL_ERROR, message=GONE)

    @property
    def is_lost(self) -> bool:
        """The connection is, for everybody."""
        return self.common.over.is_set()


def _id_of(task: Any) -> Any:
    return task.get("taskId") if isinstance(task, Mapping) else None
