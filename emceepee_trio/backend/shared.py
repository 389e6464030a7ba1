"""What connections share: eras, what servers have, turns to start, children, and their reaper.

There is one in a daemon. Knows neither sessions nor connections.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import attrs

from ..config.bounds import MAX_CHILDREN
from ..errors import LimitReached
from ..journal import Journal
from ..tracing import Tracing
from .catalogue.memory import Memory
from .children.files import most_children
from .children.reaper import Reaper
from .children.starts import Starts
from .http.auth import AuthFor

ERAS = 1000
"""Verdicts remembered; the oldest makes room."""

Era: TypeAlias = Literal["handshake", "modern"]
ReachedBy: TypeAlias = tuple[str | None, ...]


@attrs.define(eq=False, repr=False)
class Shared:
    reaper: Reaper | None = None
    """Ends what children leave behind; without one, that stays."""
    eras: dict[ReachedBy, Era] = attrs.field(factory=dict)
    """What servers speak, by how they are reached."""
    memory: Memory | None = None
    """What servers have; without one, every session connects at once."""
    tokens: Collection[str] = frozenset()
    """Of ours; no child gets a variable that is one."""
    starts: Starts = attrs.field(factory=Starts)
    journal: Journal = attrs.field(factory=Journal)
    """Where they note what happens; without a reader, that is nowhere."""
    tracing: Tracing | None = None
    """Who traces requests, if somebody does."""
    auth_for: AuthFor = lambda server, principal: None
    """What servers behind URLs are shown of who asks."""
    most_children: int = attrs.field(factory=most_children)
    children: int = attrs.field(default=0, init=False)
    """Those that are ending, too."""

    def remember(self, key: ReachedBy, era: Era) -> None:
        if key not in self.eras and len(self.eras) >= ERAS:
            del self.eras[next(iter(self.eras))]
        self.eras[key] = era

    @contextmanager
    def place_for_child(self) -> Generator[None]:
        """Counts a child process, from before its start until it is gone.

        Raises:
            LimitReached: there are too many. There may be fewer later, so it is worth another try.
        """
        if self.children >= self.most_children:
            few = self.most_children == most_children() < MAX_CHILDREN
            why = ", all that its limit of open files leaves room for" if few else ""
            raise LimitReached(
                f"{self.most_children} child processes run already, of all sessions of this "
                f"daemon together{why}; remove servers that start a program, or end sessions"
            )
        self.children += 1
        try:
            yield
        finally:
            self.children -= 1
