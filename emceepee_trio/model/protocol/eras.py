"""What one era of the protocol says in the words of the other. Pure.

The modern one puts an envelope around every request and every result; what is within is the same,
but for a few words. Whatever neither of them knows is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

OURS = "io.modelcontextprotocol/"
"""What keys of `_meta` begin with that belong to the protocol, and so to one connection."""
SERVER_INFO = f"{OURS}serverInfo"
LOG_LEVEL = f"{OURS}logLevel"
SUBSCRIPTION = f"{OURS}subscriptionId"

CACHED = frozenset(
    (
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    )
)
"""Results that say how long they hold."""

NOT_FOUND = -32002
"""What the handshake era says of a resource that is not there."""
INVALID_PARAMS = -32602
"""What the modern one says of it."""


def meta_of(said: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = said.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _with_meta(said: Mapping[str, Any], meta: Mapping[str, Any]) -> Json:
    """*said* with that as its `_meta`; without one if it is empty."""
    rest = {key: value for key, value in said.items() if key != "_meta"}
    return {**rest, "_meta": dict(meta)} if meta else rest


def params_for(params: Mapping[str, Any], *, is_modern: bool) -> Json:
    """Those of a client's request, for a server of that era.

    Without what is of the client's own connection: its envelope, and its token for progress.
    """
    kept = {
        key: value
        for key, value in meta_of(params).items()
        if key != "progressToken" and (not key.startswith(OURS) or (is_modern and key == LOG_LEVEL))
    }
    return _with_meta(params, kept)


def result_for(
    method: str, result: Mapping[str, Any], server_info: Mapping[str, Any], *, is_modern: bool
) -> Json:
    """That of a server, for a client of that era."""
    if is_modern:
        said: Json = {"resultType": "complete", **result}
        if method in CACHED and said["resultType"] == "complete":
            said = {"ttlMs": 0, "cacheScope": "private", **said}
        return _with_meta(said, {SERVER_INFO: dict(server_info), **meta_of(result)})
    kept = {key: value for key, value in meta_of(result).items() if key != SERVER_INFO}
    if "resultType" not in result:
        return dict(result) if kept == meta_of(result) else _with_meta(result, kept)
    envelope = {"resultType", "ttlMs", "cacheScope"}
    return _with_meta({k: v for k, v in result.items() if k not in envelope}, kept)


def code_for(method: str, code: int, *, of_modern: bool, is_modern: bool) -> int:
    """Of an error that a server of one era answered, for a client of the other."""
    if method == "resources/read" and of_modern != is_modern:
        if is_modern and code == NOT_FOUND:
            return INVALID_PARAMS
        if not is_modern and code == INVALID_PARAMS:
            return NOT_FOUND
    return code


def capabilities_for(capabilities: Mapping[str, Any], *, of_modern: bool, is_modern: bool) -> Json:
    """What a server of one era can do for a client of the other."""
    if of_modern == is_modern:
        return dict(capabilities)
    # Tasks of the handshake era are no part of the modern one.
    return {key: value for key, value in capabilities.items() if key != "tasks"}


def notice_for(params: Mapping[str, Any] | None, subscription: str | int | None) -> Json:
    """The params of a server's notification, for a client that follows it with that request."""
    said = params or {}
    meta = {key: value for key, value in meta_of(said).items() if key != SUBSCRIPTION}
    if subscription is not None:
        meta[SUBSCRIPTION] = subscription
    return _with_meta(said, meta)
