"""What a backend says of its own accord, handed on to whoever owns it.

Sampling, elicitation, roots, logging and every other notification arrive here as the dicts that
came. Notifications are handled synchronously in the order of the wire (the dispatcher's receive
loop calls :meth:`Callbacks.heard` before it looks at the next message), so nothing overtakes and
nothing needs a queue. This module knows no session: it talks to a :class:`Host`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal, Protocol

import attrs
import trio
from mcp import MCPError
from mcp.shared.dispatcher import DispatchContext
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

from ...errors import internal
from ...model.events import Happening, Json
from ...model.text.brief import brief
from ...waits.firewall import Firewall
from .messages import REFUSED
from .traced import NOBODY, TracedConnection

Params = Mapping[str, Json]
Kind = Literal["elicitation", "sampling"]
LogSource = Literal["protocol", "stderr", "stdout"]
Abandoned = Literal[
    "withdrawn_by_server",
    "call_ended",
    "server_disconnected",
    "server_removed",
    "server_reconnected",
]
"""Why nobody waits for an answer any more. ``call_ended``: the call that a modern backend
interrupted to ask was itself cancelled or has expired."""
OnProgress = Callable[[Params], None]

NO_CALL = ""
working_for: ContextVar[str | None] = ContextVar("working_for", default=NO_CALL)
"""The tool call that a task works for, by its id, or :data:`NO_CALL`. None in a task that puts a
question of which nobody says what it is for: on the pipes of a program, questions name no request.
"""


asked_as: ContextVar[str | None] = ContextVar("asked_as", default=None)
"""What a modern server calls the question that a task puts."""


@contextmanager
def as_work_for(call: str | None) -> Generator[None]:
    token = working_for.set(call)
    try:
        yield
    finally:
        working_for.reset(token)


LIST_CHANGED = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/resources/list_changed": ("resources", "resource_templates"),
    "notifications/prompts/list_changed": ("prompts",),
}
"""Which of our lists each notice makes stale."""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
"""An answer to our own listening, not news."""

STDERR_TAIL = 20
"""Lines of stderr that an error shows."""

WORD = 200
"""Characters of what is a word in a log message: its level, its logger."""


def _word(said: Any) -> str:
    return said[:WORD] if isinstance(said, str) else brief(said)[:WORD]


@attrs.frozen
class LogLine:
    """What a server writes, or says to be logged."""

    server: str
    source: LogSource
    level: str
    data: Json
    logger: str | None = None


class Host(Protocol):
    """Who owns a backend: a session. What it is told never raises."""

    @property
    def principal(self) -> str:
        """For whom it is connected."""
        ...

    @property
    def extensions(self) -> Params:
        """Of the protocol, that who sees the backend's answers as they are knows; each with what
        it says of it."""
        ...

    def publish(self, server: str, happening: Happening) -> object: ...

    def notified(self, server: str, method: str, params: Params | None) -> None: ...

    def logged(self, line: LogLine) -> None: ...

    async def ask(
        self, server: str, kind: Kind, params: Params, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        """Park until the client answers.

        *abandoned* says why, should this be cancelled. Raises `MCPError` for the backend.
        """
        ...

    def roots(self, server: str) -> list[dict[str, Any]]:
        """As they are known."""
        ...

    async def list_roots(self, server: str) -> list[dict[str, Any]]:
        """As its client says that they are now, if it can say so only when it is asked."""
        ...


@attrs.define(eq=False)
class Over:
    """An event: nothing will come any more. Set by whoever notices first.

    The connection's owner is told synchronously, so before anybody can run who waits for this or
    for an answer.
    """

    _tell: Callable[[], None]
    why: str | None = attrs.field(default=None, init=False)
    _event: trio.Event = attrs.field(factory=trio.Event, init=False)

    def set(self, why: str | None = None) -> None:
        if not self._event.is_set():
            self.why = why
            self._event.set()
            self._tell()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()


@attrs.define(eq=False, repr=False)
class Callbacks:
    """The receiving side of one connection."""

    server: str
    host: Host
    stale: Callable[[str], None]
    """Told which list of ours has changed."""
    why_over: Callable[[], Abandoned]
    """Why the connection ends, for questions that are open then."""
    on_over: Callable[[], None]
    """Told when it does."""
    using: Callable[[], AbstractContextManager[object]] = nullcontext
    """Entered while a question is open."""
    over: Over = attrs.field(init=False)
    """Of the transport in use."""
    progress: dict[str | int, OnProgress] = attrs.field(factory=dict, init=False)
    """By progress token; entries belong to the requests that put them here."""
    calls: dict[str | int, str | None] = attrs.field(factory=dict, init=False)
    """What requests under way are for, by their ids; likewise."""
    stderr: deque[str] = attrs.field(factory=lambda: deque(maxlen=STDERR_TAIL), init=False)
    """The last lines of the transport in use, which usually say why a start failed."""
    on_acknowledged: Callable[[Params], None] | None = attrs.field(default=None, init=False)
    traced: TracedConnection | None = attrs.field(default=None, init=False)
    """Of the connection in use."""

    def __attrs_post_init__(self) -> None:
        self.renew()

    def renew(self) -> Over:
        """Another transport is about to be opened."""
        self.stderr.clear()
        self.over = Over(self.on_over)
        return self.over

    async def asked(
        self,
        context: DispatchContext[TransportContext],
        method: str,
        params: Params | None,
    ) -> dict[str, Any]:
        """A request of a backend of the handshake era."""

        def abandoned() -> Abandoned:
            return "withdrawn_by_server" if context.cancel_requested.is_set() else self.why_over()

        said = context.message_metadata
        related = said.related_request_id if isinstance(said, ServerMessageMetadata) else None
        return await self.answer_to(related, method, params, abandoned)

    async def answer_to(
        self,
        related: str | int | None,
        method: str,
        params: Params | None,
        abandoned: Callable[[], Abandoned],
    ) -> dict[str, Any]:
        """The same, of what came in the answer to the request of that id, if that is known."""
        with as_work_for(None if related is None else self.calls.get(related, NO_CALL)):
            return await self.answer(method, params, abandoned)

    async def answer(
        self, method: Any, params: Any, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        """What the backend gets; what it sent need not be of any shape.

        Raises:
            MCPError: what it gets instead.
        """
        traced = NOBODY
        if self.traced is not None:
            traced = self.traced.asked(method, params, working_for.get())
        with self._wall("question_crashed", method, MCPError) as wall, traced:
            return await self._answer(method, params, abandoned)
        raise MCPError(code=INTERNAL_ERROR, message=internal(str(wall.log_id)))

    def _wall(self, event: str, method: Any, *expected: type[Exception]) -> Firewall:
        fields = {"server": self.server, "method": str(method)[:WORD]}
        return Firewall(event, None, expected, fields=fields)

    async def _answer(
        self, method: Any, params: Any, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        if method == "ping":
            return {}
        if method == REFUSED:
            why = str(self._checked(params, "message")["message"])
            raise MCPError(code=INVALID_REQUEST, message=why)
        if method == "roots/list":
            with self.using():
                return {"roots": await self.host.list_roots(self.server)}
        if method == "elicitation/create":
            return await self._ask("elicitation", self._checked(params, "message"), abandoned)
        if method == "sampling/createMessage":
            return await self._ask("sampling", self._checked(params, "messages"), abandoned)
        raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=method)

    async def _ask(
        self, kind: Kind, params: Params, abandoned: Callable[[], Abandoned]
    ) -> dict[str, Any]:
        with self.using():
            return await self.host.ask(self.server, kind, params, abandoned)

    @staticmethod
    def _checked(params: Any, key: str) -> Params:
        if not isinstance(params, dict) or key not in params:
            raise MCPError(code=INVALID_PARAMS, message=f"missing {key!r}")
        return params

    def wrote_to_stderr(self, line: str) -> None:
        self.stderr.append(line)
        self.host.logged(LogLine(self.server, "stderr", "info", line))

    def made_noise(self, line: str) -> None:
        """A line on its standard output that is no message."""
        self.host.logged(LogLine(self.server, "stdout", "info", line))

    def heard(self, method: str, params: Params | None) -> bool:
        """A notification, in the order of the wire. Always consumed."""
        with self._wall("notification_crashed", method):
            self._heard(method, params)
            if self.traced is not None:  # last: a bug there costs nobody the notification
                self.traced.heard(method, params)
        return True

    def _heard(self, method: str, params: Params | None) -> None:
        if method == "notifications/progress":
            token = (params or {}).get("progressToken")
            if isinstance(token, str | int) and (on_progress := self.progress.get(token)):
                on_progress(params or {})
        elif method == "notifications/message":
            said = params or {}
            logger = _word(said["logger"]) if "logger" in said else None
            level = _word(said.get("level", "info"))
            line = LogLine(self.server, "protocol", level, said.get("data"), logger)
            self.host.logged(line)
        elif method == ACKNOWLEDGED:
            if self.on_acknowledged is not None:
                self.on_acknowledged(params or {})
        elif method != "notifications/cancelled":  # which the dispatcher has applied
            for name in LIST_CHANGED.get(method, ()):
                self.stale(name)
            self.host.notified(self.server, method, params)
