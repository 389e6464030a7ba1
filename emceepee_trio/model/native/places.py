"""Where URIs of resources stand in what a server says: each is put in another form. Pure.

What came is left as it is, and what has no URI in it is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..json.intake import Steps

Rewrite: TypeAlias = Callable[[str], str]

_IN_ENTRY = ("uri", "uriTemplate")
_IN_META = ("ui/resourceUri", "openai/outputTemplate")
"""Before it was ``ui.resourceUri``, and what ChatGPT calls it."""


def in_entry(entry: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """Of any list, or a piece of a resource: its own URI, and those of what shows it."""
    return _put(entry, {**_texts(entry, _IN_ENTRY, rewrite), **_meta(entry, rewrite)})


def in_result(result: dict[str, Any], rewrite: Rewrite) -> Steps[dict[str, Any]]:
    """What a call, a resource or a prompt has come to."""
    changes = dict(_meta(result, rewrite))
    if isinstance(content := result.get("content"), list):
        changes["content"] = yield from _in_blocks(content, rewrite)
    if isinstance(contents := result.get("contents"), list):
        changes["contents"] = yield from _each(contents, rewrite)
    if isinstance(messages := result.get("messages"), list):
        found = []
        for message in messages:
            yield
            found.append((yield from _in_message(message, rewrite)))
        changes["messages"] = found
    return _put(result, changes)


def in_update(params: dict[str, Any], rewrite: Rewrite) -> dict[str, Any]:
    """What is told of a resource that has changed."""
    return _put(params, _texts(params, ("uri",), rewrite))


def _in_message(message: Any, rewrite: Rewrite) -> Steps[Any]:
    if not isinstance(message, dict) or "content" not in message:
        return message
    content = message["content"]
    if isinstance(content, list):
        return {**message, "content": (yield from _in_blocks(content, rewrite))}
    return {**message, "content": (yield from _in_block(content, rewrite))}


def _each(items: list[Any], rewrite: Rewrite) -> Steps[list[Any]]:
    found = []
    for item in items:
        yield
        found.append(in_entry(item, rewrite) if isinstance(item, dict) else item)
    return found


def _in_blocks(blocks: list[Any], rewrite: Rewrite) -> Steps[list[Any]]:
    found = []
    for block in blocks:
        yield
        found.append((yield from _in_block(block, rewrite)))
    return found


def _in_block(block: Any, rewrite: Rewrite) -> Steps[Any]:
    if not isinstance(block, dict):
        return block
    changes = dict(_meta(block, rewrite))
    match block:
        case {"type": "resource_link"}:
            changes |= _texts(block, ("uri",), rewrite)
        case {"type": "resource", "resource": dict() as resource}:
            changes["resource"] = in_entry(resource, rewrite)
        case {"type": "tool_result", "content": list() as content}:
            changes["content"] = yield from _in_blocks(content, rewrite)
    return _put(block, changes)


def _meta(holder: Mapping[str, Any], rewrite: Rewrite) -> Mapping[str, Any]:
    meta = holder.get("_meta")
    if not isinstance(meta, dict):
        return {}
    changes = _texts(meta, _IN_META, rewrite)
    if isinstance(ui := meta.get("ui"), Mapping) and (
        shown := _texts(ui, ("resourceUri",), rewrite)
    ):
        changes["ui"] = {**ui, **shown}
    return {"_meta": {**meta, **changes}} if changes else {}


def _texts(holder: Mapping[str, Any], keys: tuple[str, ...], rewrite: Rewrite) -> dict[str, Any]:
    return {key: rewrite(holder[key]) for key in keys if isinstance(holder.get(key), str)}


def _put(holder: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    return {**holder, **changes} if changes else holder
