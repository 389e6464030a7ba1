"""What a tool of ours is: a name, a description, a class of arguments, a handler.

The schema that clients see and the check of what they send come from the same class. Handlers
have no lifetimes of their own: they work in the task of the request, on the session they get.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import attrs
import trio

from ...backend.backend import Backend
from ...backend.connections.callbacks import as_work_for
from ...config.bounds import MAX_EXECUTE_TIMEOUT_MS
from ...errors import InvalidArguments, UnknownTool
from ...model.json.fields import fields_of
from ...model.json.lenient import lenient
from ...model.json.problems import Invalid, Problem, did_you_mean, listed
from ...model.json.schema import json_schema
from ...model.json.strict import structure
from ...session.calls.call import Call
from ...session.calls.reissues import What, see_losses
from ...session.manager import SessionManager
from ...session.questions.relay import Offer
from ...session.session import Session
from ...waits.patience import Patience
from .response import Reply

A = TypeVar("A")
OnProgress = Callable[[Mapping[str, Any]], None]

LEAST = math.ulp(0.0)
"""Of progress: whatever a server says is more."""

STRANGERS = 10
"""Unknown arguments that an error tells of, beside what is wrong."""


@attrs.define(eq=False)
class Request:
    """One tools/call, as far as a handler needs to know it."""

    session: Session
    manager: SessionManager
    on_progress: OnProgress | None = None
    """Hands a backend's progress on to a client that asked for it."""
    answer_ms: int = MAX_EXECUTE_TIMEOUT_MS
    """Nothing is waited for longer: from then on its client may not read the answer any more."""
    may_resend: bool = False
    """Its client sends it again, as another one, if it loses the stream of its answer."""
    is_cut_off: bool = False
    """It has lost its client, which may only have lost the stream, and send it again."""
    was_written: bool | None = None
    """Its answer; None while that is not decided."""
    gave_up: bool = False
    """The client has stopped waiting for an answer."""
    within: Call | None = None
    """The call of the script that makes it, which waits as long as that does."""
    shortens: bool = True
    """Long answers of servers are kept, and shown as previews; else they are passed on whole."""
    offer: Offer | None = None
    """Its client may be asked itself what comes up."""
    meta: Mapping[str, Any] = attrs.field(factory=dict)
    """`_meta` that its client has sent along, for the server that is called."""
    patience: Patience | None = None
    """Of who waits for it, if that is not one exchange with its client alone."""
    is_native: bool = False
    """Its client knows resources of servers by URIs that say whose they are: see `model/native`."""
    ignored: list[Problem] = attrs.field(factory=list, init=False)
    """Arguments that nobody knows; the answer says that they meant nothing."""
    _at_end: list[Callable[[bool], None]] = attrs.field(factory=list, init=False)
    _backend: Backend | None = attrs.field(default=None, init=False)
    _joins: bool = attrs.field(default=False, init=False)
    """The call that it waits for is joined by the request that repeats it."""
    _promote: Callable[[], None] | None = attrs.field(default=None, init=False)

    def waits_for(self, backend: Backend) -> None:
        """A client that wants to hear of progress hears of that, too, now and from time to time."""
        self._backend = backend
        if self.on_progress is not None and backend.idle_since is not None:
            self.on_progress({"progress": LEAST, "message": self.missing()})

    @property
    def server(self) -> str | None:
        """The one that it waits for."""
        return None if self._backend is None else self._backend.server.name

    def missing(self) -> str | None:
        """What to say of a server that is waited for, as long as it is not connected."""
        return self._backend.unstarted if self._backend is not None else None

    def goes_on_with(self, other: Request) -> None:
        """It repeats that one, whose work goes on."""
        self._backend = other._backend

    def can_go_on(self, promote: Callable[[], None]) -> None:
        """A handler's work does not need the request: what to do if the client stops waiting."""
        self._promote = promote
        if self.gave_up:
            promote()

    async def call(
        self, what: What, args: object, begin: Callable[[], Call], *, joins: bool
    ) -> Call:
        """What it waits for: that call, or the one of the request which it repeats.

        Raises:
            ToolError: it cannot be made.
        """
        reissues = self.session.reissues
        joins = joins and self.may_resend and reissues.keep_ms > 0
        joined = await reissues.join(what, args) if joins else None
        call = joined or begin()
        if joins:
            self._joins = True
            asked = reissues.begin(what, call)
            self.at_end(lambda is_written: reissues.end(asked, is_written=is_written))
        if joined is not None:
            # Its outcome may be here already, and this stream be lost as well.
            await see_losses()
        return call

    def at_end(self, act: Callable[[bool], None]) -> None:
        """Have *act* told whether the answer is written, now if the request has ended before."""
        if self.was_written is None:
            self._at_end.append(act)
        else:
            act(self.was_written)

    def end(self, *, is_written: bool) -> None:
        self.was_written = is_written
        while self._at_end:
            self._at_end.pop(0)(is_written)

    @property
    def stays(self) -> bool:
        """Whether its call does, if nobody waits for that any more."""
        return self._joins and self.is_cut_off

    def waiting(self, call: Call) -> AbstractContextManager[object]:
        """Entered while it waits for that call."""
        if self.offer is None:
            return nullcontext()
        return self.session.relay.waiting(self.offer, call.id)

    def move_on_after(self, seconds: float) -> AbstractContextManager[trio.CancelScope]:
        """Of the time in which its client waits."""
        wait = trio.move_on_after if self.patience is None else self.patience.move_on_after
        return wait(seconds)

    def working(self) -> AbstractContextManager[object]:
        """Entered while it asks servers by itself."""
        return nullcontext() if self.offer is None else as_work_for(self.offer.id)

    @property
    def goes_on(self) -> bool:
        """Whether it does if the client stops waiting."""
        return self._promote is not None

    def give_up(self) -> None:
        """The client has stopped waiting. Synchronous: the request is cancelled right after."""
        self.gave_up = True
        if self._promote is not None:
            self._promote()


@attrs.frozen
class Tool:
    name: str
    description: str
    arguments: type[Any]
    handler: Callable[[Request, Any], Awaitable[Reply]]
    annotations: Mapping[str, bool]
    waits: bool
    """Its requests may wait for a server, and count in `limits.calls` while they do. Of those that
    wait and do not, each has a bound of its own; the others wait for nothing."""
    meta: Mapping[str, Any] = attrs.field(factory=dict)
    """`_meta` of its entry: what clients that show tools only on demand go by."""
    by_call: bool = False
    """All that its requests wait for is a call, which is settled when the session ends."""

    @property
    def schema(self) -> dict[str, Any]:
        """Of its arguments. Only where there are none does it say that there are no others: one
        that is unknown has no effect, and the answer says so."""
        schema = json_schema(self.arguments)
        if schema["properties"]:
            del schema["additionalProperties"]
        return schema

    def to_json(self) -> dict[str, Any]:
        """Its entry in tools/list."""
        entry = {
            "name": self.name,
            "description": self.description,
            "inputSchema": _terse(self.schema),
            "annotations": dict(self.annotations),
        }
        return entry | ({"_meta": dict(self.meta)} if self.meta else {})

    async def call(self, request: Request, arguments: Mapping[str, Any]) -> Reply:
        given, strangers = lenient(arguments, self.arguments)
        try:
            checked = structure(given, self.arguments)
        except Invalid as invalid:
            raise self.refused([*strangers[:STRANGERS], *invalid.problems]) from None
        request.ignored += strangers
        if not self.waits:
            return await self.handler(request, checked)
        with request.session.calls.place():
            return await self.handler(request, checked)

    def refused(self, problems: Sequence[Problem]) -> InvalidArguments:
        """What is wrong with the arguments, and what there is."""
        said = listed(problems)
        known = ", ".join(field.name for field in fields_of(self.arguments))
        message = f"{self.name}: {'; '.join(said)}; it takes {known}"
        return InvalidArguments(message, {"problems": said})


def _terse(schema: Any) -> Any:
    """Without what everybody takes for granted: every model pays for each word of it."""
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _terse(inner) for name, inner in value.items()}
        if key == "properties"
        else value
        for key, value in schema.items()
        if value is not False and (key, value) != ("minimum", 0)
    }


@attrs.frozen
class NoArguments:
    """For tools that take none."""


LOADED = {"anthropic/alwaysLoad": True}
"""Of what is there from the start, in clients that load other tools when they are looked for."""

READS = {"readOnlyHint": True}
"""Changes nothing anywhere."""
ACTS = {"destructiveHint": False}
"""Changes something, takes nothing away."""
ENDS = {"destructiveHint": True}
"""Takes something away."""
SETS = {"destructiveHint": True, "idempotentHint": True}
"""Puts something in the place of what was there."""
CALLS = {"openWorldHint": True}
"""Does whatever a server does."""


def tool(
    description: str,
    arguments: type[A],
    annotations: Mapping[str, bool],
    *,
    waits: bool = False,
    by_call: bool = False,
    hint: str = "",
) -> Callable[[Callable[[Request, A], Awaitable[Reply]]], Tool]:
    """A tool of the decorated function, under its name.

    With a *hint* it is one that no work can do without: clients shall not hide it, and those that
    do find it by these words.
    """
    meta = LOADED | {"anthropic/searchHint": hint} if hint else {}
    return lambda handler: Tool(
        handler.__name__, description, arguments, handler, annotations, waits, meta, by_call
    )


@attrs.frozen(eq=False)
class Toolbox:
    """What a client is given: tools in their order, and how they work together."""

    tools: tuple[Tool, ...]
    instructions: Callable[[Session], str]
    unlisted: tuple[Tool, ...] = ()
    """That are answered as well: a client may know them from elsewhere."""
    _by_name: Mapping[str, Tool] = attrs.field(init=False, repr=False)

    @_by_name.default
    def _find(self) -> Mapping[str, Tool]:
        return {tool.name: tool for tool in (*self.unlisted, *self.tools)}

    def find(self, name: str) -> Tool | None:
        return self._by_name.get(name)

    def get(self, name: str) -> Tool:
        """Raises `UnknownTool` if there is none of that name."""
        found = self._by_name.get(name)
        if found is None:
            raise UnknownTool(f"Unknown tool: {name}{did_you_mean(name, self._by_name)}")
        return found
