"""How a server is treated: when it is started, whose it is, how it is tried again, what is shown.

Some of it is said of one server only, some for all that say nothing else (``defaults``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, TypeAlias

from ..model.allowed import is_glob
from ..model.json.fields import Bounds, Doc, Most, frozen
from ..model.json.problems import Problem
from .bounds import (
    DAY,
    HOUR,
    MAX_ALLOWED_GLOBS,
    MAX_ALLOWED_TOOLS,
    MAX_SEARCH_PATTERN,
    MIB,
    MINUTE,
    SECOND,
)

ALLOWED = Most(MAX_ALLOWED_TOOLS, MAX_SEARCH_PATTERN)
"""Names or globs of tools."""

RelayTo: TypeAlias = Literal["auto", "tools"]

Start: TypeAlias = Literal["auto", "eager", "lazy"]
STARTS = Doc(
    "When a session connects: ``eager``: as it begins; ``lazy``: when it first needs the server; "
    "``auto``: then, too, if it is known what the server has, else as it begins. See `Starting`_."
)
IDLE_STOPS = Doc(
    "A command that was not used for so long is stopped, and started again by the next use; it "
    "loses what it keeps in memory. Never, if it is 0 or not given."
)

Scope: TypeAlias = Literal["session", "principal"]
SCOPES = Doc(
    "Whose a connection is: ``session``: each session has one of its own; ``principal``: all "
    "sessions of one principal have one together, and whatever the server keeps in memory. See "
    "`Sharing`_."
)
LINGERS = Doc("How long a shared connection stays when the last session that had it is gone.")
SHARED_LOGS = Doc(
    "Whether sessions that share it see what it writes to stderr, and log messages that belong to "
    "no call. They may speak of any session's."
)


@frozen
class Retry:
    """How a connection is tried again; as it stands, for child processes."""

    enabled: Annotated[bool, Doc("Whether to try again at all.")] = True
    max_attempts: Annotated[
        int | None, Bounds(1, 1_000_000), Doc("Tries in a row before giving up; null for no end.")
    ] = 5
    base_delay_ms: Annotated[int, Bounds(10, HOUR), Doc("The pause before the first try.")] = SECOND
    max_delay_ms: Annotated[int, Bounds(10, DAY), Doc("The longest pause.")] = MINUTE
    multiplier: Annotated[float, Bounds(1, 100), Doc("How much longer each pause is.")] = 2.0
    jitter: Annotated[float, Bounds(0, 1), Doc("Share of a pause by which it is moved.")] = 0.1

    def problems(self) -> Iterator[Problem]:
        if self.max_delay_ms < self.base_delay_ms:
            yield Problem("max_delay_ms", f"less than base_delay_ms, {self.base_delay_ms}")


@frozen
class Reconnect(Retry):
    """The same for URLs, which come back by themselves: no end of tries, longer pauses."""

    max_attempts: Annotated[
        int | None, Bounds(1, 1_000_000), Doc("Tries in a row before giving up; null for no end.")
    ] = None
    max_delay_ms: Annotated[int, Bounds(10, DAY), Doc("The longest pause.")] = 3 * MINUTE


@frozen
class ServerResults:
    """Answers of this server that are too long to be shown."""

    inline_bytes: Annotated[
        int | None,
        Bounds(0, 1024 * MIB),
        Doc("Of an answer, in bytes, that is shown whole; 0: any is. As for all, if not given."),
    ] = None


@frozen
class ServerNative:
    """This server in the view ``native``."""

    tools: Annotated[
        tuple[str, ...],
        ALLOWED,
        Doc("Names or globs of tools that are listed first, where not all can be."),
    ] = ()

    def problems(self) -> Iterator[Problem]:
        yield from too_many_globs("tools", self.tools)


@frozen
class ServerRelay:
    """Questions of this server to clients that can answer them by themselves."""

    elicitation: Annotated[
        RelayTo | None, Doc("``auto`` or ``tools``; as for all, if not given.")
    ] = None
    sampling: Annotated[RelayTo | None, Doc("``auto`` or ``tools``; likewise.")] = None


@frozen
class ViewRelay:
    """Questions to clients with that view."""

    elicitation: Annotated[
        RelayTo | None, Doc("``auto`` or ``tools``; as for all, if not given.")
    ] = None
    sampling: Annotated[RelayTo | None, Doc("``auto`` or ``tools``; likewise.")] = None


def too_many_globs(key: str, patterns: tuple[str, ...]) -> Iterator[Problem]:
    if (globs := sum(map(is_glob, patterns))) > MAX_ALLOWED_GLOBS:
        yield Problem(key, f"too many globs: {globs}, at most {MAX_ALLOWED_GLOBS}")
