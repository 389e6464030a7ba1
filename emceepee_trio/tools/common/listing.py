"""Lists in answers: written entry by entry, in turns with everybody else, and not without end.

What lists hold is a server's to say: how many entries, and how large each. An answer has room for
`MAX_LIST_BYTES` of them; how many more there are is said, and so is which ones are too large to be
shown beside others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ...backend.connections.turns import Turns
from ...config.bounds import MAX_LIST_BYTES
from ...model.json.intake import Steps
from ...model.json.spelling import spell_up_to
from ...model.json.weight import weigh
from ...model.wire import dumps
from .response import Reply, text

NAMES = (
    "server",
    "stale",
    "as_of",
    "name",
    "uri",
    "uriTemplate",
    "task_id",
    "requestId",
    "timestamp",
)
"""What is left of an entry that is too large."""


@attrs.frozen
class Written:
    entries: list[str]
    """As JSON."""
    size: int
    """Bytes of them."""
    more: int
    """Those for which there was no room."""
    of: Mapping[str, int]
    """Bytes of those of each server."""


async def write(entries: Iterable[Mapping[str, Any]], room: int = MAX_LIST_BYTES) -> Written:
    """As many of *entries* as there is *room* for, in their order."""
    found: list[str] = []
    size = more = 0
    of = Counter[str]()
    async with Turns() as turns:
        for entry in entries:
            if turns.is_over:
                await turns.next()
            if more:
                more += 1
                continue
            said = await turns.through(abridged(entry))
            bytes_ = size_of_text(said)
            if size + bytes_ + 1 > room:
                more = 1
                continue
            found.append(said)
            size += bytes_ + 1
            of[str(entry.get("server"))] += bytes_
    return Written(found, size, more, of)


def abridged(entry: Mapping[str, Any], room: int = MAX_LIST_BYTES) -> Steps[str]:
    """The JSON of *entry*, or of how it is called if it is too large."""
    said = yield from spell_up_to(entry, room)
    if said is not None and size_of_text(said) <= room:
        return said
    named = {key: entry[key] for key in NAMES if key in entry}
    return dumps(
        {key: value for key, value in named.items() if weigh(value) <= 1000} | {"too_large": True}
    )


def size_of_text(said: str) -> int:
    return len(said) if said.isascii() else len(said.encode())


def listed(key: str, written: Written, said: Mapping[str, Any] | None = None) -> Reply:
    """An answer with the list *key*, then how many are missing, then what else is *said*."""
    rest = ({"more": written.more} if written.more else {}) | dict(said or {})
    tail = "," + dumps(rest)[1:] if rest else "}"
    answer = f'{{"{key}":[{",".join(written.entries)}]{tail}'
    return Reply({"content": [text(answer)], "isError": False})


async def list_reply(
    key: str, entries: Iterable[Mapping[str, Any]], said: Mapping[str, Any] | None = None
) -> Reply:
    return listed(key, await write(entries), said)
