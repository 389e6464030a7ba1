"""What servers and rooms of a session say of their own accord, on its way to whoever listens.

None of it raises: whoever has something to tell is in the middle of something that has to be done,
told or not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import attrs

from ..backend.connections.callbacks import LogLine, Params
from ..config.bounds import MAX_DELIVERY_BYTES, MAX_SAID
from ..journal import Journal
from ..model import events, facts
from ..model.events import Happening
from ..model.wire import timestamp
from ..waits.firewall import Firewall
from .buffers import Buffers, LogEntry, NotificationEntry
from .events import Events
from .presence import Presence
from .servers.planned import Planned

WORK_ENDS = (
    events.TaskCompleted,
    events.TaskFailed,
    events.TaskCancelled,
    events.TaskExpired,
    events.ElicitationCancelled,
    events.ElicitationExpired,
    events.SamplingCancelled,
    events.ElicitationAnswered,
    events.SamplingAnswered,
    events.SamplingExpired,
    events.TimerExpired,
)
"""From here on a session may be idle. What backends say of their own accord keeps none alive."""

Watcher = Callable[[str, Happening], None]
"""Told of whatever happens, as planned or not: to which server, and what."""

Heard = Callable[[str, str, Params | None], None]
"""Told of a notification: its server, its method, its params."""


@attrs.define(eq=False)
class Announcements:
    """Those of one session."""

    session_id: str
    wall: Callable[[], float]
    journal: Journal
    events: Events
    buffers: Buffers
    planned: Planned
    presence: Presence
    _watchers: set[Watcher] = attrs.field(factory=set, init=False)
    _listeners: set[Heard] = attrs.field(factory=set, init=False)

    def publish(self, server: str, happening: Happening, at: str | None = None) -> bool:
        """Whether it will be told, if it is news; what cannot be is counted as lost."""
        if isinstance(happening, WORK_ENDS):
            self.presence.touch()
        for watcher in tuple(self._watchers):
            with self._wall("event_crashed", server):
                watcher(server, happening)
        if self.planned.hides(server, happening):
            if isinstance(happening, events.ServerConnected) and self.planned.connected(server):
                self.events.wake(server, happening)
            return True
        with (wall := self._wall("event_crashed", server, lambda _: self.events.lose(1))):
            self.events.publish(server, happening, at)
        if isinstance(happening, events.ProcessStopped) and happening.reason is not None:
            self.planned.add(server)  # whoever needs it again expects that it comes
        return wall.log_id is None

    def notified(self, server: str, method: str, params: Params | None) -> None:
        now = timestamp(self.wall())
        told = events.Notification(method[:MAX_SAID], now, None, True)
        for listener in tuple(self._listeners):
            with self._wall("notification_crashed", server):
                listener(server, method, params)
        with self._wall("notification_crashed", server):
            heard = NotificationEntry.of(server, method, params, now)
            self.buffers.hear(heard)
            if heard.size <= MAX_DELIVERY_BYTES:
                told = events.Notification(method, now, params)
        self.publish(server, told, now)

    def logged(self, line: LogLine) -> None:
        with self._wall("log_crashed", line.server):
            self.buffers.log(LogEntry.of(line, timestamp(self.wall())))
        self.journal.note(facts.LineLogged, self.session_id, line.server)

    def watch(self, watcher: Watcher) -> None:
        """Show it everything that happens, for as long as there is a session."""
        self._watchers.add(watcher)

    @contextmanager
    def watched_by(self, watcher: Watcher) -> Generator[None]:
        """Show it everything that happens, meanwhile."""
        self._watchers.add(watcher)
        try:
            yield
        finally:
            self._watchers.discard(watcher)

    @contextmanager
    def heard_by(self, listener: Heard) -> Generator[None]:
        """Show it every notification as it comes, meanwhile."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    def _wall(
        self, event: str, server: str, failed: Callable[[str], object] | None = None
    ) -> Firewall:
        return Firewall(event, failed, fields={"session": self.session_id, "server": server})
