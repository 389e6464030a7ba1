"""ASGI, as types; and a request that is refused, with what is said to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

GONE = "emceepee.gone"
"""The extension of ASGI by which ours tell an app at any time whether its client is gone: a
function, without a checkpoint."""
INVALID_REQUEST = -32600
"""Of JSON-RPC, in which everybody is answered who comes to us."""


class Refused(Exception):
    """The request is answered with a status and a JSON-RPC error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: int = INVALID_REQUEST,
        data: Any = None,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = list(headers)
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.body: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": error}
