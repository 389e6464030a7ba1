"""What sharing a server would save, told in the log as its programs multiply.

Once there are two of them, and then each time that they have doubled: whoever runs a daemon finds
it there without asking, and it is no line for each session.
"""

from __future__ import annotations

import attrs
import trio

from ... import logs
from ...journal import Reader
from ...model import facts
from ...session.manager import SessionManager
from .programs import Programs, measured, programs

EVERY = 60.0
"""Seconds between two looks, and before the first: a program that starts has not grown yet."""
CHANGES = (facts.ChildStarted, facts.ChildEnded)


@attrs.define(eq=False)
class Savings:
    _manager: SessionManager
    _told: dict[tuple[str, str], int] = attrs.field(factory=dict, init=False)
    """How many programs there were when it was told last, by principal and server."""
    _changed: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def tell(self) -> None:
        changes = Reader("what sharing would save", lambda _: self._changed.set(), CHANGES)
        self._changed.set()  # what has started before we listen
        with self._manager.journal.reading(changes):
            while True:
                await self._changed.wait()
                await trio.sleep(EVERY)
                self._changed = trio.Event()
                await self._look()

    async def _look(self) -> None:
        every = programs(self._manager, None)
        running = {(each.principal, each.server.name): each for each in every}
        self._told = {key: count for key, count in self._told.items() if key in running}
        due = {key: each for key, each in running.items() if self._is_due(key, each)}
        for (principal, server), said in zip(due, await measured(list(due.values())), strict=True):
            if "sharing_would_save_bytes" not in said:
                continue  # they have just ended
            self._told[principal, server] = said["programs"]
            logs.write(
                "info",
                "sharing_would_save",
                server=server,
                principal=principal,
                sessions=len(said["sessions"]),
                programs=said["programs"],
                processes=said["processes"],
                resident_bytes=said["resident_bytes"],
                saved_bytes=said["sharing_would_save_bytes"],
                keeps_nothing=said["keeps_nothing"],
                advice=KNOWN if said["keeps_nothing"] else UNKNOWN,
            )

    def _is_due(self, key: tuple[str, str], each: Programs) -> bool:
        return each.would_be_one and len(each.pids) >= 2 * self._told.get(key, 1)


KNOWN = '"scope": "principal" in its entry has one program for all sessions'
UNKNOWN = f"if it keeps nothing between two calls, {KNOWN}"
