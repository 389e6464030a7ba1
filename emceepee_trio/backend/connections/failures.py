"""Why a connection could not be made, said so that somebody can mend it."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import anyio
import attrs
import httpx2
import trio
from mcp import MCPError

from ...config import Server
from ...errors import ConnectFailed, Denied, LimitReached, ToolError
from ...model.inherited import of_network
from ...model.text.last_words import is_of_network, last_words
from ..http.network import Forbidden
from ..http.transport import describe
from .connect import Transport
from .witness import Unanswered

NOT_A_BUG = (
    MCPError,
    ConnectFailed,
    LimitReached,
    OSError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    # The SDK, of a server that says something while the connection closes.
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    # The SDK, of an endpoint of the old SSE transport that it refuses, or of absurd numbers.
    ValueError,
    OverflowError,
)
"""What opening or holding a connection raises when the peer is at fault."""

REFUSED = {401, 403}

PASSING = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
"""Why a start can fail today and work tomorrow."""

LONGEST = 500
"""Characters of what a peer says that an error quotes."""
BESIDE = 200
"""Characters of each line that is quoted beside that."""
VARIABLES = 100
"""Names of variables in the details of an error."""


@attrs.frozen
class Failure:
    """A try that did not work out."""

    message: str
    details: Mapping[str, Any] = attrs.field(factory=dict)
    final: bool = False
    """Trying again without a change would end the same."""
    kind: type[ToolError] = ConnectFailed
    """What callers are told it is."""

    def error(self, server: str, *, left: float | None, goes_on: bool) -> ToolError:
        """What they are told, and what to do next.

        *left*: seconds until another try, if one follows by itself; *goes_on*: there is a
        connection, which was to be replaced.
        """
        details, message = dict(self.details), f"server {server!r}: {self.message}"
        if goes_on:
            message += "; the connection that there was goes on"
        elif left is not None:
            details["next_retry_ms"] = round(left * 1000)
            message += f"; next try in {left:.1f} s, await_activity tells when it is back"
        elif self.kind is Denied:
            message += "; only the operator can allow it, by configuring this server or the policy"
        else:
            message += "; correct it, then call reconnect_server"
        return self.kind(message, details)


def explain(
    server: Server,
    streams: Transport | None,
    stderr: Iterable[str],
    group: BaseExceptionGroup[Exception] | None,
    worked_for: float | None = None,
) -> Failure:
    """*group* is None when nothing went wrong but time; *worked_for*: so long, to the end."""
    lines = [_cut(line) for line in stderr]
    details: dict[str, Any] = {"stderr": lines} if lines else {}
    said = ""
    if words := last_words(lines):
        said = f"; it said: {_cut(words.reason)}"
        if words.around:
            said += f" (around it: {' | '.join(_cut(line, BESIDE) for line in words.around)})"
    if streams is not None and is_of_network(lines):
        had = [_cut(name, BESIDE) for name in sorted(streams.environment)]
        details["environment"] = had[:VARIABLES]
        said += (
            "; for proxies, certificates and registries its environment had "
            f"{', '.join(of_network(had)[:VARIABLES]) or 'nothing'} (it inherits what is usual; "
            "inherit_env in the configuration hands on more, env sets them)"
        )
    process = streams.process if streams is not None else None
    error = _cause(group) if group is not None else None
    status = streams.http.status if streams is not None and streams.http is not None else None
    if isinstance(error, httpx2.HTTPStatusError):
        status = error.response.status_code
    if status is not None:
        details["http_status"] = status
    if status in REFUSED:
        if streams is not None and streams.http is not None and streams.http.auth is not None:
            why = f"{server.target} answered {status} to what it was shown for this principal"
            return Failure(why, details, final=True)
        has = f" (it has {', '.join(server.headers)})" if server.headers else ""
        return Failure(
            f"{server.target} answered {status}; set or correct 'Authorization' in this server's "
            f"headers{has}",
            details,
            final=True,
        )
    if error is None:
        within = f"{server.connect_timeout_ms} ms"
        if worked_for is not None:
            within = f"{worked_for:.0f} s, though it still works"
        return Failure(f"no answer within {within}{said}", details)
    if isinstance(error, Forbidden):
        return Failure(str(error), details, final=True, kind=Denied)
    if isinstance(error, LimitReached):
        return Failure(error.message, details, kind=LimitReached)
    if isinstance(error, ConnectFailed):
        final = "command" in (error.details or {})
        return Failure(_bare(error, server), {**details, **(error.details or {})}, final)
    if process is not None and process.failure is not None:
        return Failure(process.failure, details)
    if isinstance(error, MCPError):
        if not isinstance(error, Unanswered):
            refusal = error.error
            details |= {"code": refusal.code, "message": _cut(refusal.message)}
            as_ = f" (HTTP status {status})" if status is not None else ""
            return Failure(f"refused to initialize{as_}: {_cut(refusal.message)}", details)
        if process is not None and process.exit is not None:
            how = process.exit.signal or f"code {process.exit.code}"
            details |= {k: v for k, v in attrs.asdict(process.exit).items() if v is not None}
            return Failure(f"process exited ({how}) before it answered{said}", details)
        return Failure(f"closed the connection before it answered{said}", details)
    if isinstance(error, OSError) and server.transport == "stdio":
        return Failure(f"cannot start: {error}", details, final=error.errno not in PASSING)
    if isinstance(error, httpx2.HTTPError):
        return Failure(describe(error, server), details)
    if isinstance(error, httpx2.InvalidURL):
        return Failure(f"cannot reach {server.target}: {error}", details, final=True)
    return Failure(f"connection lost: {_cut(str(error) or type(error).__name__)}", details)


def _cause(group: BaseExceptionGroup[Exception]) -> Exception | None:
    """The first that is more than an echo of another."""
    leaves = list(_leaves(group))
    echoes = (anyio.BrokenResourceError, anyio.ClosedResourceError, Unanswered)
    for error in leaves:
        if not isinstance(error, echoes):
            return error
    return leaves[0] if leaves else None


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else text[:most] + "…"


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        elif not isinstance(error, trio.Cancelled):
            yield error


def _bare(error: ConnectFailed, server: Server) -> str:
    return error.message.removeprefix(f"server {server.name!r}: ")
