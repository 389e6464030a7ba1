"""Asking backends: one of them, within a patience, or all of them at once.

What a backend or the connection to it says instead of an answer becomes one of our errors here.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import attrs
import trio
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from ...backend.backend import Backend
from ...backend.catalogue.catalog import Entries, List, name_of
from ...backend.connections.client import Client
from ...backend.connections.turns import Turns
from ...backend.connections.witness import BrokeOff, NotRun, Unanswered
from ...config.bounds import MAX_PAGE_BYTES, MAX_SAID
from ...errors import ExecutionFailed, NotFound, ServerDisconnected, TimedOut, ToolError, internal
from ...model.json.weight import cut
from ...model.states import BackendState
from ...model.wire import timestamp
from ...session.calls.call import Call
from ...waits.firewall import Firewall, begin
from .listing import Group, errors_within, listed
from .registry import Request
from .response import Reply

T = TypeVar("T")

MAX_ERRORS = MAX_PAGE_BYTES // 4
"""Bytes of what a list over all servers says of those that are missing in it."""

RESOURCE_NOT_FOUND = -32002
"""What the handshake era says of a resource that is not there; the modern one: invalid params."""

OUT_OF_REACH = {
    BackendState.RECONNECTING,
    BackendState.ERROR,
    BackendState.DISCONNECTED,
    BackendState.DISABLED,
}
"""Backends that a list over all does not wait for."""


ASKS_NAMED = 5
"""Questions of a call that the text names which tells of them; the context has more."""


def as_tool_error(error: MCPError, server: str, what: str) -> ToolError:
    """What the backend said, or that it is gone."""
    said = error.error
    message = cut(said.message, MAX_SAID)
    if isinstance(error, NotRun):
        return ServerDisconnected(
            f"server {server!r} has lost our session, or could not be reached, twice in a row, "
            f"and did not run {what}; get_server_status tells more",
            {"may_have_run": False},
        )
    if isinstance(error, BrokeOff):
        return ServerDisconnected(
            f"server {server!r} broke off before it answered {what}; the outcome is unknown, it "
            "may have run. The server itself is still there",
            {"may_have_run": True},
        )
    if isinstance(error, Unanswered):
        return ServerDisconnected(
            f"server {server!r} was lost before it answered {what}; the outcome is unknown, it may "
            "have run. await_activity tells when the server is back",
            {"may_have_run": True},
        )
    details = {"code": said.code, "message": said.message}
    if said.data is not None:
        details["data"] = said.data
    if said.code == RESOURCE_NOT_FOUND or (
        said.code == INVALID_PARAMS and what == "resources/read"
    ):
        return NotFound(
            f"server {server!r}: {message}; list_resources shows what there is", details
        )
    return ExecutionFailed(f"server {server!r} answered {what} with an error: {message}", details)


async def ask(
    request: Request,
    backend: Backend,
    method: str,
    params: Mapping[str, Any],
    *,
    leaves_long: bool = False,
) -> dict[str, Any]:
    """One request to one backend, waiting for its connection if need be.

    Raises:
        ToolError: it cannot be reached, refused, or did not answer in time.
    """

    async def exchange(client: Client) -> dict[str, Any]:
        return await client.request(
            method, params, on_progress=request.on_progress, leaves_long=leaves_long
        )

    return await _within_patience(request, backend, method, exchange)


async def entries_of(request: Request, backend: Backend, name: List) -> Entries:
    """One list of one backend, with the same errors."""

    async def exchange(client: Client) -> Entries:
        return await backend.catalog.get(name, client)

    return await _within_patience(request, backend, f"{name}/list", exchange)


async def list_of(
    request: Request, backend: Backend, name: List, *, fresh: bool = False
) -> Labelled:
    """The same as it is remembered, if that is all that is needed."""
    server = backend.server.name
    if not fresh and (remembered := backend.remembered(name)) is not None:
        return Labelled(server, remembered.entries, as_of=timestamp(remembered.at))
    if fresh:
        backend.catalog.stale(name)
    return Labelled(server, await entries_of(request, backend, name))


async def _within_patience(
    request: Request, backend: Backend, what: str, exchange: Callable[[Client], Awaitable[T]]
) -> T:
    limits, name = request.session.config.limits, backend.server.name
    request.waits_for(backend)
    patience_ms = min(limits.execute_timeout_ms, request.answer_ms)
    with request.move_on_after(patience_ms / 1000):
        try:
            with request.working():
                return await backend.ask(exchange)
        except MCPError as error:
            raise as_tool_error(error, name, what) from None
    request.session.planned.discard(name)  # what was said to be missing is told when it comes
    limit = "execute_timeout_ms" if patience_ms == limits.execute_timeout_ms else "answer_ms"
    starting = backend.starting
    raise TimedOut(
        f"server {name!r} did not answer {what} within {patience_ms} ms (limits.{limit})"
        + (f": it is {starting}" if starting is not None else "")
        + "; get_server_status tells what it is doing"
    )


def asks(call: Call) -> str:
    """What a call waits for, and what to do about it."""
    questions = [question for question in call.open_questions if not question.is_relayed]
    ids = ", ".join(question.id for question in questions[:ASKS_NAMED])
    if (more := len(questions) - ASKS_NAMED) > 0:
        ids += f" and {more} more"
    answers = " and ".join(dict.fromkeys(f"respond_to_{question.kind}" for question in questions))
    servers = ", ".join(dict.fromkeys(question.server for question in questions))
    said = f"server {servers} asks ({ids}"
    if any(question.call is None for question in questions):
        said += "; it does not say for which call"
    return f"{said}); answer with {answers}, then get_task_result"


def is_asked(call: Call) -> str:
    """That a call waits for the client's own answer, if it does."""
    ids = [question.id for question in call.open_questions if question.is_relayed]
    return f"It waits for the user, who is asked ({', '.join(ids[:ASKS_NAMED])}). " if ids else ""


@attrs.frozen
class Labelled:
    """Entries of one server, and what we say of each; copied only as they are needed."""

    server: str
    of_server: Entries
    stale: bool = False
    as_of: str | None = None
    """When it was like this, of a server that is not connected because nobody needed it."""

    @property
    def label(self) -> dict[str, Any]:
        said: dict[str, Any] = {"server": self.server}
        if self.stale:
            said["stale"] = True
        return said if self.as_of is None else said | {"as_of": self.as_of}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        # Whose they are and whether they are old is for us to say, whatever an entry says itself.
        label = self.label
        for entry in self.of_server:
            yield {**label, **strangers_own(entry)}


def strangers_own(entry: Mapping[str, Any]) -> dict[str, Any]:
    """*entry* without what is ours to say."""
    return {key: entry[key] for key in entry if key not in ("server", "stale", "as_of")}


@attrs.define(eq=False)
class Gathered:
    """A list over many backends."""

    lists: list[Labelled] = attrs.field(factory=list, init=False)
    errors: list[dict[str, str]] = attrs.field(factory=list, init=False)

    def entries(self) -> Iterator[dict[str, Any]]:
        return itertools.chain.from_iterable(self.lists)

    async def names(self) -> list[str]:
        """Of all entries, in their order."""
        found: list[str] = []
        async with Turns() as turns:
            for each in self.lists:
                for entry in each.of_server:
                    if turns.is_over:
                        await turns.next()
                    found.append(name_of(entry))
        return found

    @property
    def said(self) -> dict[str, Any]:
        """What an answer says beside the entries."""
        return {"errors": errors_within(self.errors, MAX_ERRORS)} if self.errors else {}

    async def reply(self, request: Request, key: str, asked: Any) -> Reply:
        groups = [Group(each.server, each, len(each.of_server)) for each in self.lists]
        reply, page = await listed(request, key, groups, asked, self.said)
        return attrs.evolve(reply, defines=page.sizes)


async def gather(
    request: Request, name: List, backends: Iterable[Backend], *, fresh: bool = False
) -> Gathered:
    """The lists of *backends*, in their order; nobody waits for a slow one for long."""
    found: dict[str, Labelled] = {}
    failed: dict[str, str] = {}
    asked = list(backends)
    patience_ms = request.session.config.limits.list_patience_ms

    async def one(backend: Backend) -> None:
        server = backend.server.name
        if backend.state in OUT_OF_REACH:
            failed[server] = f"{backend.state.value}: {backend.last_error or 'not connected'}"
            return
        failed[server] = f"{backend.state.value}: no answer yet after {patience_ms} ms"
        try:
            found[server] = await list_of(request, backend, name, fresh=fresh)
        except ToolError as error:
            failed[server] = error.message
        else:
            del failed[server]

    def crashed(backend: Backend, log_id: str) -> None:
        failed[backend.server.name] = internal(log_id)

    with trio.move_on_after(patience_ms / 1000):  # noqa: ASYNC100 - the nursery waits for them all
        async with trio.open_nursery() as nursery:
            for backend in asked:
                who = {"session": request.session.id, "server": backend.server.name}
                wall = Firewall("list_crashed", partial(crashed, backend), fields=who)
                begin(nursery, wall, one, backend)
    gathered = Gathered()
    for backend in asked:
        server = backend.server.name
        if server in failed:
            request.session.planned.discard(server)
            if (starting := backend.starting_still) is not None:
                failed[server] += f"; {starting}"
            gathered.errors.append({"server": server, "error": failed[server]})
            gathered.lists.append(Labelled(server, backend.old(name), stale=True))
        else:
            gathered.lists.append(found[server])
    return gathered
