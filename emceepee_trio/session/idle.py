"""The end of a session that nobody has used for long."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from ..config import Limits
from ..config.bounds import UNUSED_SESSION_MS
from .session import Session


@attrs.define(eq=False)
class IdleWatch:
    """To its sweeper, a session is one more thing that is kept for a while.

    Not a deadline: a request in the deadline's own tick would be killed although it came.
    """

    _session: Session
    _limits: Limits
    _end: Callable[[Session], object]

    def next_due(self) -> float:
        """The earliest possible end, as far as is known now; the sweeper looks again there."""
        presence, idle = self._session.presence, self._limits.session_idle_ms
        patience = idle if presence.used else min(idle, UNUSED_SESSION_MS)
        return presence.idle_since + patience / 1000

    def sweep(self) -> None:
        if trio.current_time() < self.next_due():
            return
        if self._session.has_work:
            self._session.presence.touch()
        else:
            self._end(self._session)
