"""The beginning and the end of what is too long, up to the end of a line or an element."""

from __future__ import annotations

from collections.abc import Sequence

from ...config.bounds import MAX_PREVIEW_BYTES
from ...model.json.long.text import Text
from ...model.wire import dumps

HEAD = MAX_PREVIEW_BYTES * 5 // 8
TAIL = MAX_PREVIEW_BYTES - HEAD


def ends_of(parts: Sequence[Text], *, is_json: bool) -> tuple[str, str]:
    """The beginning and the end of all *parts* together."""
    head, tail, length = "", "", sum(map(len, parts))
    for part in parts:
        if len(head) >= HEAD:
            break
        head += part[: HEAD - len(head)]
    head = head_of(head, HEAD, is_json=is_json)
    room = min(TAIL, length - len(head))
    for part in reversed(parts):
        if len(tail) >= room:
            break
        tail = part[-(room - len(tail)) :] + tail
    return head, tail_of(tail, TAIL, is_json=is_json)


def head_of(said: str, room: int, *, is_json: bool = False) -> str:
    """Of the beginning as much as has *room*, up to the end of a line or an element."""
    said = fitting(said, room)
    if (at := said.rfind("\n")) < 0 and is_json:
        at = max(said.rfind("},"), said.rfind("],")) + 1 or said.rfind(",")
    return said[: at + 1] if at > 0 else said


def tail_of(said: str, room: int, *, is_json: bool = False) -> str:
    """Of the end, from the beginning of a line or an element on."""
    while len(dumps(said)) - 2 > room or len(said.encode("utf-8", "surrogatepass")) > room:
        said = said[max(1, len(said) // 16) :]
    if (at := said.find("\n", 0, -1)) < 0 and is_json:
        starts = [n for n in (said.find("},"), said.find("],")) if n >= 0]
        at = min(starts) + 1 if starts else said.find(",")
    return said[at + 1 :] if at >= 0 else said


def fitting(said: str, room: int) -> str:
    """The longest beginning whose JSON has no more bytes than that, about."""
    said = said[:room]
    while (size := len(dumps(said).encode("utf-8", "surrogatepass")) - 2) > room:
        said = said[: min(len(said) * room // size, len(said) - 1)]
    return said
