"""The root of the task tree: start in order, stop in reverse.

Sockets are bound before anything is started, READY is said last. Sessions are outermost, because
requests rely on them. A signal that ends us begins a drain: nothing more is accepted, what is under
way has its grace, then sessions end. The receiver of signals is open to the very end: a second
signal must find us listening, or it kills the process without clean-up.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs
import trio

from . import logs, systemd
from .backend.http.auth import AuthFor
from .config import Config, ConfigError
from .errors import EmceepeeError, internal
from .front.faces.views import FACES
from .front.http import McpEndpoint
from .journal import Journal, Reader
from .model.facts import SessionEnded, SessionOpened
from .model.wire import timestamp
from .serving.binds import Bind, Bound, listening
from .serving.listen import Drain, serve_http
from .session.manager import SessionManager, open_sessions
from .telemetry.export import open_telemetry
from .waits.firewall import Firewall, begin_lasting
from .waits.garbage import Garbage
from .waits.watchdog import slow_steps
from .web.app import App, pages
from .web.costs.savings import Savings
from .web.metrics.scrape import Metrics
from .web.security import Security
from .web.token_file import BadToken
from .web.tokens import Credentials


class Insecure(EmceepeeError):
    """What was asked for would let anybody in."""


@attrs.frozen
class Settings:
    """What a daemon goes by; read at the start, and again when it is told to."""

    config: Config
    credentials: Credentials | None
    """None: no token is needed."""
    path: Path | None = None
    """The file that has said so, if one has."""


Read = Callable[[], Settings]
Announce = Callable[[Settings, Sequence[Bound]], None]


@attrs.define(eq=False)
class Daemon:
    """What runs, without what it listens on: a foreign ASGI server has its own."""

    manager: SessionManager
    endpoint: McpEndpoint
    app: App
    sockets: Sequence[Bound]

    def reload(self, settings: Settings) -> None:
        """Go by other settings from now on. Synchronous."""
        config = resolved(settings.config, self.sockets)
        security = _security(settings, self.sockets)
        self.manager.reload(config)
        self.endpoint.config, self.app.security = config, security


@attrs.define(eq=False)
class Rereading:
    """Settings, read at the start and again: by a signal, or because a program asks for it."""

    _read: Read
    _path: Path | None = attrs.field(default=None, init=False)
    _read_at: float = attrs.field(default=0.0, init=False)
    _problems: list[str] = attrs.field(factory=list, init=False)
    """Of the last time."""
    is_in_part: bool = attrs.field(default=False, init=False)
    """A bug has kept the last time from being all or nothing."""
    go_by: Callable[[Settings], None] | None = attrs.field(default=None, init=False)
    """What is done with those that are read again; None unless a daemon runs that is to go on."""
    told: Callable[[], object] = attrs.field(default=lambda: None, init=False)
    """Is called when they were read again, for who shows what has become of it."""

    def first(self) -> Settings:
        """
        Raises:
            ConfigError, BadToken: they are no good.
        """
        began = time.time()  # what is written after it may not have been seen
        settings = self._read()
        self._read_at, self._path = began, settings.path
        return settings

    def again(self) -> list[str]:
        """All of it or nothing: with any mistake, which is told, we stay as we are."""
        if self.go_by is None:
            return ["the daemon is about to stop, and reads nothing any more"]
        self._problems, self.is_in_part, settings = [], False, None
        fields = {"problem": "internal error"}
        wall = Firewall("reload_failed", expected=(ConfigError, BadToken), fields=fields)
        try:
            with wall:  # a bug in reading, or in what is made of it, is no reason to end what runs
                settings = self.first()
                self.go_by(settings)
                logs.write("info", "reloaded", servers=len(settings.config.servers))
        except ConfigError as error:
            self._problems = error.lines
        except BadToken as error:
            self._problems = [str(error)]
        for problem in self._problems:
            logs.write("error", "reload_failed", problem=problem)
        if wall.log_id is not None:
            self._problems, self.is_in_part = [internal(wall.log_id)], settings is not None
        self.told()
        return self._problems

    def to_json(self) -> dict[str, Any]:
        return {
            "path": None if self._path is None else str(self._path.absolute()),
            "read_at": timestamp(self._read_at),
            "problems": self._problems,
            "is_in_part": self.is_in_part,
        }


@asynccontextmanager
async def open_daemon(
    settings: Settings,
    sockets: Sequence[Bound] = (),
    is_ready: Callable[[], bool] = lambda: True,
    state: Path | None = None,
    reading: Rereading | None = None,
    auth_for: AuthFor | None = None,
) -> AsyncGenerator[Daemon]:
    """Sessions, and the app that opens them for whoever calls it, live in this block.

    What outlives them is kept in the *state* directory, if there is one. By *reading* a program can
    have the settings read again, by *auth_for* servers behind URLs are shown who asks.
    """
    config = resolved(settings.config, sockets)
    about = {
        "version": version("emceepee-trio"),
        "pid": os.getpid(),
        "started_at": timestamp(time.time()),
        "listening": list(map(str, sockets)),
    }

    with slow_steps(time.perf_counter, time.thread_time) as slow:

        def said() -> dict[str, Any]:
            return {**about, "ready": is_ready(), "slow_steps": slow.to_json()}

        async with (
            open_telemetry(config.telemetry) as tracing,
            open_sessions(
                config, state, is_local=_are_local(sockets), tracing=tracing, auth_for=auth_for
            ) as manager,
        ):
            endpoint = McpEndpoint(manager, config, FACES)
            metrics = Metrics(manager, slow, endpoint.handshake.listening)
            quart = pages(manager, said, is_ready, metrics, reading)
            app = App(_security(settings, sockets), endpoint, quart)
            with metrics.reading():
                async with trio.open_nursery() as beside:
                    begin_lasting(beside, "savings_crashed", Savings(manager).tell)
                    yield Daemon(manager, endpoint, app, sockets)
                    beside.cancel_scope.cancel("stopped")


async def run(
    binds: Sequence[Bind], read: Read, announce: Announce, state: Path | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and return.

    Raises:
        ConfigError, BadToken, CannotListen, Insecure: nothing was started.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        reading = Rereading(read)
        settings = reading.first()
        with listening(binds) as sockets:
            _check_secure(settings, sockets)
            drain = Drain(settings.config.shutdown_grace_ms / 1000)
            async with trio.open_nursery() as nursery:
                async with open_daemon(
                    settings, sockets, lambda: not drain.started.is_set(), state, reading
                ) as daemon:
                    reading.go_by = partial(_go_by, daemon, drain)
                    # Outlives the daemon, which has ended when the last signals are taken.
                    nursery.start_soon(_obey, signals, daemon, drain, reading)  # noqa: ASYNC111 - see above
                    announce(settings, sockets)
                    logs.write("info", "listening", addresses=list(map(str, sockets)))
                    systemd.ready()
                    with _garbage_collected(daemon.manager.journal, nursery):
                        await serve_http(daemon.app, sockets, drain)
                nursery.cancel_scope.cancel("stopped")
    logs.write("info", "stopped")


@contextmanager
def _garbage_collected(journal: Journal, nursery: trio.Nursery) -> Generator[None]:
    """Of sessions: one that has ended holds itself, and Python looks rarely (`settle` of commands).

    Within another program that is the other's to say.
    """
    garbage = Garbage()

    def read(fact: SessionOpened | SessionEnded) -> None:
        (garbage.begun if isinstance(fact, SessionOpened) else garbage.ended)()

    begin_lasting(nursery, "garbage_crashed", garbage.collect)
    with journal.reading(Reader("garbage of sessions", read, (SessionOpened, SessionEnded))):
        yield


async def _obey(
    signals: AsyncIterator[int], daemon: Daemon, drain: Drain, reading: Rereading
) -> None:
    async for number in signals:
        logs.write("info", "signal_received", signal=signal.Signals(number).name)
        if number != signal.SIGHUP:
            systemd.stopping()
            daemon.endpoint.drain()
            reading.go_by = None
            drain.begin(skip_grace=drain.started.is_set())
        elif not drain.started.is_set():
            systemd.reloading()
            reading.again()
            systemd.ready()


def _go_by(daemon: Daemon, drain: Drain, settings: Settings) -> None:
    daemon.reload(settings)
    drain.grace = settings.config.shutdown_grace_ms / 1000


def resolved(config: Config, sockets: Sequence[Bound]) -> Config:
    """With what depends on who can connect: clients elsewhere may not start programs here."""
    if config.policy.spawn is not None:
        return config
    is_local = _are_local(sockets)
    policy = attrs.evolve(config.policy, spawn="allow" if is_local else "deny")
    return attrs.evolve(config, policy=policy)


def _are_local(sockets: Sequence[Bound]) -> bool:
    """Whether whoever connects there is on this machine."""
    return bool(sockets) and all(bound.is_local for bound in sockets)


def _security(settings: Settings, sockets: Sequence[Bound]) -> Security:
    names = [name for bound in sockets for name in bound.names]
    if (credentials := settings.credentials) is None:
        return Security.of(settings.config.http, None, names)
    # Elsewhere nobody can look there, and nobody needs to know of it.
    is_local = _are_local(sockets)
    where = credentials.where if is_local else None
    return Security.of(settings.config.http, credentials.tokens, names, where)


def _check_secure(settings: Settings, sockets: Sequence[Bound]) -> None:
    if settings.credentials is None:
        for bound in sockets:
            if not bound.is_local:
                raise Insecure(
                    f"--no-auth is only for loopback and Unix sockets, and {bound} is neither"
                )
