"""What servers have, as it was when they were last connected: told while they are not.

There is one in a daemon. An entry is known by a keyed hash of everything that decides what its
server answers, and of the principal for whom: what is in a header or a variable is nowhere in it.
Knows neither connections nor files; `shelf.py` keeps it on a disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping

import attrs

from ... import logs
from ...config import Server
from ...config.bounds import DAY, MIB
from ...config.roots import Roots
from ...model.inherited import inherited
from ..connections.client import Negotiated
from .catalog import Entries, List

ENTRIES = 1000
"""Servers that are remembered, each as often as it is reached in another way or for another
principal; the one that was not wanted for the longest makes room."""
SIZE = 32 * MIB
"""Bytes of all entries; likewise."""
ONE = 4 * MIB
"""Bytes of one; a server that has more to say is connected by each session, and the log says so."""
KEPT = 7 * DAY / 1000
"""Seconds after which an entry is none: the server is connected, and may be another one by now."""


@attrs.frozen
class Remembered:
    """One list."""

    entries: Entries
    at: float
    """When it came, on the wall clock."""
    size: int
    """In bytes, about."""


@attrs.frozen
class KnownServer:
    """One server."""

    negotiated: Negotiated
    lists: Mapping[List, Remembered]
    at: float
    """When it was connected, on the wall clock."""
    size: int
    """In bytes, about, of all that it says."""
    private: tuple[str, ...] = attrs.field(default=(), repr=False, eq=False)
    """Values of the entry that are written nowhere, even if the server repeats them."""


@attrs.define(eq=False)
class Memory:
    wall: Callable[[], float]
    key: bytes = attrs.field(factory=lambda: secrets.token_bytes(32), repr=False)
    """Of the hashes; who has it can tell whether a guess is right."""
    changed: Callable[[str], None] = lambda name: None
    """Told of an entry that has come, has changed or has gone."""
    _known: OrderedDict[str, KnownServer] = attrs.field(factory=OrderedDict, init=False)
    """The one that was not wanted for the longest is first."""
    _size: int = attrs.field(default=0, init=False)

    def name(self, server: Server, principal: str, roots: Roots | None) -> str:
        """Of its entry; *roots* are those that it is told."""
        inherits: Mapping[str, str] = {}
        if server.inherit_env:
            usual = inherited(os.environ, ())
            more = inherited(os.environ, server.inherit_env)
            inherits = {key: more[key] for key in more if key not in usual}
        told = roots and [root if isinstance(root, str) else root.to_json() for root in roots]
        decides = [
            (principal, server.name),
            (server.transport, server.era, server.propagate_session),
            (server.url, sorted(server.headers.items())),
            (server.command, server.args, server.cwd),
            (sorted(server.env.items()), sorted(inherits.items())),
            (server.allowed_tools, server.denied_tools, told),
        ]
        said = json.dumps(decides).encode()
        return hashlib.blake2b(said, key=self.key, digest_size=20).hexdigest()

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, name: str) -> KnownServer | None:
        known = self._known.get(name)
        if known is None or self.is_old(known):
            return None
        self._known.move_to_end(name)
        return known

    def is_old(self, known: KnownServer) -> bool:
        return self.wall() - known.at > KEPT

    def learn(self, name: str, known: KnownServer, server: str) -> None:
        """*server* is how it is called in the log."""
        if known.size > ONE:
            logs.write("warn", "catalogue_too_large", server=server, bytes=known.size, most=ONE)
            self.forget(name)
        elif self._known.get(name) != known:
            self.put(name, known)
            self.changed(name)

    def put(self, name: str, known: KnownServer) -> None:
        """As the newest."""
        self._drop(name)
        self._known[name] = known
        self._size += known.size
        while len(self._known) > ENTRIES or self._size > SIZE:
            self.forget(next(iter(self._known)))

    def forget(self, name: str) -> None:
        if self._drop(name):
            self.changed(name)

    def _drop(self, name: str) -> bool:
        known = self._known.pop(name, None)
        if known is not None:
            self._size -= known.size
        return known is not None

    def get(self, name: str) -> KnownServer | None:
        """However old."""
        return self._known.get(name)
