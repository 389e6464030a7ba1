"""What servers that sessions share have logged, and no session is shown.

It may speak of any of them, so it is for who runs the daemon. Kept as a session keeps what it is
shown: the newest of each server, also when that has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from ... import logs
from ...backend.connections.callbacks import LogLine
from ...config import Limits
from ...model.wire import timestamp
from ...waits.firewall import Firewall
from ..buffers import Buffers, LogEntry


@attrs.define(eq=False)
class Unshown:
    _limits: Limits = attrs.field(factory=Limits)
    _wall: Callable[[], float] = time.time
    _of: dict[str, Buffers] = attrs.field(factory=dict, init=False)
    """By principal."""

    def keep(self, principal: str, line: LogLine) -> None:
        """Never raises: its server is in the middle of something."""
        with Firewall("log_crashed", fields={"server": line.server}):
            if (kept := self._of.get(principal)) is None:
                limits = self._limits
                kept = Buffers(limits.notifications, limits.logs, limits.log_bytes)
                self._of[principal] = kept
            kept.log(LogEntry.of(line, timestamp(self._wall())))
            if logs.writes("debug"):
                said = {"server": line.server, "source": line.source, "severity": line.level}
                logs.write("debug", "server_said", principal=principal, **said, data=line.data)

    def of(self, principal: str | None) -> list[Buffers]:
        """Of that one, or of all."""
        if principal is None:
            return list(self._of.values())
        return [self._of[principal]] if principal in self._of else []
