"""The settings: every key, its default and its bounds, as frozen classes.

Knows nothing of files, other programs' spellings, or the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

from ..model.problems import Problem, join, show
from ..model.strict import field
from .bounds import (
    DAY,
    KIB,
    MAX_AWAIT_TIMEOUT_MS,
    MAX_EXECUTE_TIMEOUT_MS,
    MAX_TASK_TTL_MS,
    MIB,
    MIN_TASK_TTL_MS,
    MINUTE,
    SECOND,
)
from .server import NAME, Server

OWN = "token"
"""Taken: the principal of the one token that the daemon was started with, or minted."""
LOCAL = "local"
"""Taken: the principal of everybody, where no token is needed."""

_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?"
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_HOST}"


@attrs.frozen
class Limits:
    """What anybody can use up."""

    sessions: int = field(1000, low=1, high=100_000, doc="Sessions at once.")
    session_idle_ms: int = field(
        30 * MINUTE, low=SECOND, high=30 * DAY, doc="A session with nothing under way ends."
    )
    servers: int = field(100, low=1, high=10_000, doc="Servers, configured and added.")
    calls: int = field(256, low=1, high=100_000, doc="Calls in flight per session.")
    execute_timeout_ms: int = field(
        2 * MINUTE,
        low=0,
        high=MAX_EXECUTE_TIMEOUT_MS,
        doc="How long execute_tool waits before it promotes, if the call does not say.",
    )
    await_timeout_ms: int = field(
        30 * SECOND,
        low=0,
        high=MAX_AWAIT_TIMEOUT_MS,
        doc="How long await_activity waits, if the call does not say.",
    )
    list_patience_ms: int = field(
        5 * SECOND, low=0, high=5 * MINUTE, doc="How long lists wait for servers that connect."
    )
    tasks: int = field(100, low=1, high=100_000, doc="Working tasks per session.")
    task_ttl_ms: int = field(
        10 * MINUTE,
        low=MIN_TASK_TTL_MS,
        high=MAX_TASK_TTL_MS,
        doc="How long a task may work, if the call does not say.",
    )
    finished_task_ms: int = field(
        5 * MINUTE, low=SECOND, high=DAY, doc="How long a finished task is kept."
    )
    results: int = field(200, low=1, high=100_000, doc="Finished results kept per session.")
    results_bytes: int = field(
        64 * MIB, low=64 * KIB, high=16_384 * MIB, doc="Their size together, in bytes."
    )
    questions: int = field(100, low=1, high=10_000, doc="Open questions per session.")
    question_timeout_ms: int = field(
        10 * MINUTE, low=SECOND, high=DAY, doc="How long a question waits for its answer."
    )
    events: int = field(1000, low=10, high=1_000_000, doc="Events kept per session.")
    events_bytes: int = field(
        4 * MIB, low=64 * KIB, high=1024 * MIB, doc="Their size together, in bytes."
    )
    events_ms: int = field(30 * MINUTE, low=SECOND, high=DAY, doc="How long an event is kept.")
    notifications: int = field(
        100, low=1, high=100_000, doc="Notifications kept per server, together at most 1 MiB."
    )
    logs: int = field(500, low=1, high=100_000, doc="Log lines kept per server.")
    log_bytes: int = field(
        16 * KIB, low=256, high=MIB, doc="A longer log line is cut to this, in bytes."
    )
    message: int = field(
        16 * MIB, low=64 * KIB, high=1024 * MIB, doc="One line or body of a server, in bytes."
    )
    body: int = field(4 * MIB, low=4 * KIB, high=1024 * MIB, doc="A client's request, in bytes.")


@attrs.frozen
class Health:
    """Whether silent connections still work."""

    interval_ms: int = field(2 * MINUTE, low=SECOND, high=DAY, doc="The pause between checks.")


@attrs.frozen
class Http:
    """Who may talk to us over HTTP."""

    allowed_hosts: tuple[str, ...] = field(
        (),
        pattern=_HOST,
        expected="a host, or host:port",
        doc="Names clients may call us by, beside those we are bound to.",
    )
    allowed_origins: tuple[str, ...] = field(
        (),
        pattern=_ORIGIN,
        expected='an origin such as "https://example.org"',
        doc="Web pages that may call us, as ``https://host[:port]``.",
    )
    tokens: Mapping[str, str] = field(
        attrs.Factory(dict),
        pattern=r"[!-~]+",
        expected="visible ASCII characters",
        secret=True,
        doc="Bearer tokens, by the name of their holder.",
    )

    def problems(self) -> Iterator[Problem]:
        holders: dict[str, str] = {}
        for name, token in self.tokens.items():
            if not re.fullmatch(NAME, name):
                yield Problem(join("tokens", name), "is not a name")
            elif name in (OWN, LOCAL):
                yield Problem(
                    join("tokens", name), "is the name of this daemon's operator, take another"
                )
            if (first := holders.setdefault(token, name)) != name:
                yield Problem(join("tokens", name), f"is the token of {show(first)}, too")


@attrs.frozen
class Policy:
    """What clients may have us do when they add servers."""

    spawn: Literal["allow", "allowlist", "deny"] | None = field(
        None,
        doc="Start programs. If not given: allow on stdio, loopback and Unix sockets, else deny.",
    )
    spawn_allowlist: tuple[tuple[str, ...], ...] = field(
        (), doc="Command lines that may be started; each a list of globs, one for each argument."
    )
    network: Literal["restricted", "allow"] = field(
        "restricted",
        doc="Restricted: servers that clients add are connected to directly, never at link-local "
        "or cloud metadata addresses. Allow: as those of this file, anywhere, and by the proxies "
        "of the environment.",
    )

    def problems(self) -> Iterator[Problem]:
        if self.spawn == "allowlist" and not self.spawn_allowlist:
            yield Problem("spawn_allowlist", 'is empty; spawn "deny" says the same more clearly')
        for i, words in enumerate(self.spawn_allowlist):
            if not words:
                yield Problem(join("spawn_allowlist", i), "is empty")


@attrs.frozen
class Config:
    """A whole configuration; without arguments, all defaults."""

    servers: tuple[Server, ...] = field((), doc="The servers.")
    limits: Limits = attrs.field(factory=Limits)
    health: Health = attrs.field(factory=Health)
    http: Http = attrs.field(factory=Http)
    policy: Policy = attrs.field(factory=Policy)
    context: Literal["full", "off"] = field(
        "full", doc="Whether every response tells what is new, or only await_activity."
    )
    shutdown_grace_ms: int = field(
        10 * SECOND, low=0, high=10 * MINUTE, doc="How long what is under way may take at the end."
    )
