"""Why a connection could not be made, said so that somebody can mend it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import httpx2
import trio
from mcp import MCPError

from ..config import Server
from ..errors import ConnectFailed
from .client import closed_under
from .connect import Streams

NOT_A_BUG = (MCPError, OSError, httpx2.HTTPError, httpx2.SSEError, ConnectFailed, ValueError)
"""What opening or holding a connection raises when the peer is at fault. (`ValueError`: the SDK's
way of refusing an endpoint of the old SSE transport.)"""

REFUSED = {401: "Authorization", 403: "Authorization"}


@attrs.frozen
class Failure:
    """A try that did not work out."""

    message: str
    details: Mapping[str, Any] = attrs.field(factory=dict)
    final: bool = False
    """Trying again without a change would end the same."""


def explain(
    server: Server,
    streams: Streams | None,
    stderr: Iterable[str],
    group: BaseExceptionGroup[Exception] | None,
) -> Failure:
    """*group* is None when nothing went wrong but time."""
    details: dict[str, Any] = {"stderr": lines} if (lines := list(stderr)) else {}
    http = streams.http if streams is not None else None
    process = streams.process if streams is not None else None
    if http is not None and http.status is not None:
        details["http_status"] = http.status
        if http.status in REFUSED:
            return Failure(
                f"{server.target} answered {http.status}; set or correct the header "
                f"{REFUSED[http.status]!r} in this server's headers",
                details,
                final=True,
            )
    error = next(_leaves(group), None) if group is not None else None
    if error is None:
        return Failure(f"no answer within {server.connect_timeout_ms} ms", details)
    if isinstance(error, ConnectFailed):
        final = "command" in (error.details or {})
        return Failure(_bare(error, server), {**details, **(error.details or {})}, final)
    if process is not None and process.failure is not None:
        return Failure(process.failure, details)
    if isinstance(error, MCPError):
        if not closed_under(error):
            refusal = error.error
            details |= {"code": refusal.code, "message": refusal.message}
            return Failure(f"refused to initialize: {refusal.message}", details)
        if process is not None and process.exit is not None:
            how = process.exit.signal or f"code {process.exit.code}"
            details |= {k: v for k, v in attrs.asdict(process.exit).items() if v is not None}
            said = f"; it said: {lines[-1]}" if lines else ""
            return Failure(f"process exited ({how}) before it answered{said}", details)
        return Failure("closed the connection before it answered", details)
    if isinstance(error, OSError) and server.transport == "stdio":
        return Failure(f"cannot start: {error}", details, final=True)
    if isinstance(error, httpx2.HTTPError | httpx2.SSEError):
        status = f" (HTTP status {http.status})" if http is not None and http.status else ""
        return Failure(
            f"cannot reach {server.target}: {error or type(error).__name__}{status}", details
        )
    return Failure(str(error) or type(error).__name__, details)


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        elif not isinstance(error, trio.Cancelled):
            yield error


def _bare(error: ConnectFailed, server: Server) -> str:
    return error.message.removeprefix(f"server {server.name!r}: ")
