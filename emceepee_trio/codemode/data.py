"""What a script is given of a result: data, where it has any. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.json.weight import cut
from ..model.wire import loads

SAID = 4000
"""Characters of what a failed tool says, that its exception has."""


def data(result: Mapping[str, Any]) -> dict[str, Any]:
    """``{"value": …}`` or, of a text that may be JSON, ``{"text": …}``.

    Structured content first, then JSON in a text, then text, then the blocks as they are; of
    resources, what is in the blocks.
    """
    if result.get("structuredContent") is not None:
        return {"value": result["structuredContent"]}
    content = result.get("content")
    if not isinstance(content, list):
        messages = {key: value for key, value in result.items() if key != "_meta"}
        return {"value": messages if content is None else content}
    texts = _texts(content)
    if len(texts) == len(content) == 1:
        return {"text": texts[0]}
    if texts and len(texts) == len(content):
        return {"value": "\n".join(texts)}
    if not content:
        return {"value": None}
    return {"value": [_opened(block) for block in content]}


def part(result: Mapping[str, Any]) -> dict[str, Any]:
    """What `read_result` has read, beside what it says of that: where it is from, what is next."""
    block, about = result["content"]
    shown = _opened(block)
    read = {key: shown[key] for key in ("text", "blob") if key in shown}
    return {"value": read | loads(about["text"])}


def complaint(result: Mapping[str, Any]) -> str:
    """What a tool said that has failed."""
    content = result.get("content")
    said = "\n".join(_texts(content)) if isinstance(content, list) else ""
    return cut(said or str(result.get("structuredContent") or "the tool has failed"), SAID)


def _texts(content: list[Any]) -> list[str]:
    return [
        block["text"]
        for block in content
        if isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ]


def _opened(block: Any) -> Any:
    if isinstance(block, dict) and block.get("type") == "resource":
        return block.get("resource")
    return block
