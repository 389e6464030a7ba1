"""Which lists a client has read, and as what."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

import attrs

from ....backend.catalogue.catalog import Entries
from ....backend.connections.turns import Turns
from ....model.json.spelling import spell


async def digest_of(entries: Entries) -> bytes:
    """Of all the bytes of a list."""
    found = sha256()
    async with Turns() as turns:
        for entry in entries:
            text = await turns.through(spell(entry))
            found.update(text.encode("utf-8", "surrogatepass"))
            found.update(b"\n")
            if turns.is_over:
                await turns.next()
    return found.digest()


@attrs.define(eq=False)
class Readings:
    digests: dict[str, bytes] = attrs.field(factory=dict, init=False)
    """By their methods, as they were read last."""
    listeners: set[Callable[[str, bytes], None]] = attrs.field(factory=set, init=False)

    def read(self, method: str, digest: bytes) -> None:
        self.digests[method] = digest
        for listener in tuple(self.listeners):
            listener(method, digest)
