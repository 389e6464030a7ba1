"""The settings: every key, its default and its bounds, as frozen classes.

Knows nothing of files, other programs' spellings, or the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Literal, TypeAlias

import attrs

from ..model.inherited import More
from ..model.json.fields import Bounds, Doc, Pattern, Secret, frozen
from ..model.json.intake import Measure
from ..model.json.problems import Problem, join, show
from ..views import ONE_SERVER, VIEWS
from .bounds import (
    DAY,
    KIB,
    MAX_AWAIT_TIMEOUT_MS,
    MAX_CHILDREN,
    MAX_EXECUTE_TIMEOUT_MS,
    MAX_TASK_TTL_MS,
    MIB,
    MIN_TASK_TTL_MS,
    MINUTE,
    SECOND,
)
from .policy import Policy
from .roots import Roots, roots_problems
from .server import (
    FEW,
    IDLE_STOPS,
    LINGERS,
    NAME,
    SCOPES,
    SHARED_LOGS,
    STARTS,
    VARIABLES,
    RelayTo,
    Scope,
    Server,
    Start,
    ViewRelay,
    inheritance_problems,
)

OWN = "token"
"""Taken: the principal of the one token that the daemon was started with, or minted."""
LOCAL = "local"
"""Taken: the principal of everybody, where no token is needed."""

_NOTHING: Mapping[str, object] = {}
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?"
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_HOST}"


@frozen
class Limits:
    """What anybody can use up."""

    sessions: Annotated[int, Bounds(1, 100_000), Doc("Sessions at once.")] = 1000
    session_idle_ms: Annotated[
        int,
        Bounds(SECOND, 30 * DAY),
        Doc("A session with nothing under way, and no stream with a reader, ends."),
    ] = 5 * MINUTE
    servers: Annotated[int, Bounds(1, 10_000), Doc("Servers, configured and added.")] = 100
    calls: Annotated[
        int,
        Bounds(1, 100_000),
        Doc("Requests in flight per session that may wait for a server, tool calls and others."),
    ] = 256
    starting: Annotated[
        int | None,
        Bounds(1, MAX_CHILDREN),
        Doc("Programs that start at once, of all sessions; as many as there are cores by default."),
    ] = None
    execute_timeout_ms: Annotated[
        int,
        Bounds(0, MAX_EXECUTE_TIMEOUT_MS),
        Doc("How long execute_tool waits before it promotes, if the call does not say."),
    ] = 2 * MINUTE
    await_timeout_ms: Annotated[
        int,
        Bounds(0, MAX_AWAIT_TIMEOUT_MS),
        Doc("How long await_activity waits, if the call does not say."),
    ] = 30 * SECOND
    answer_ms: Annotated[
        int,
        Bounds(100, MAX_EXECUTE_TIMEOUT_MS),
        Doc(
            "No request is held longer, whatever its timeout_ms says, unless its client is known "
            "to be more patient."
        ),
    ] = 45 * SECOND
    reissue_ms: Annotated[
        int,
        Bounds(0, 10 * MINUTE),
        Doc(
            "How long a call goes on whose client has lost the stream of its answer, in the modern "
            "era, so that it can be sent again and joined; 0: it is cancelled at once."
        ),
    ] = 30 * SECOND
    list_patience_ms: Annotated[
        int, Bounds(0, 5 * MINUTE), Doc("How long lists wait for servers that connect.")
    ] = 5 * SECOND
    calls_bytes: Annotated[
        int,
        Bounds(64 * KIB, 16_384 * MIB),
        Doc("Arguments of calls and tasks under way, together, in bytes."),
    ] = 64 * MIB
    tasks: Annotated[int, Bounds(1, 100_000), Doc("Working tasks per session.")] = 100
    task_ttl_ms: Annotated[
        int,
        Bounds(MIN_TASK_TTL_MS, MAX_TASK_TTL_MS),
        Doc("How long a task may work, if the call does not say."),
    ] = 10 * MINUTE
    finished_task_ms: Annotated[
        int, Bounds(SECOND, DAY), Doc("How long a finished task is kept.")
    ] = 5 * MINUTE
    results: Annotated[int, Bounds(1, 100_000), Doc("Finished results kept per session.")] = 200
    results_bytes: Annotated[
        int, Bounds(64 * KIB, 16_384 * MIB), Doc("Their size together, in bytes.")
    ] = 64 * MIB
    questions: Annotated[int, Bounds(1, 10_000), Doc("Open questions per session.")] = 100
    questions_bytes: Annotated[
        int, Bounds(64 * KIB, 1024 * MIB), Doc("Their size together, in bytes.")
    ] = 4 * MIB
    question_timeout_ms: Annotated[
        int, Bounds(SECOND, DAY), Doc("How long a question waits for its answer.")
    ] = 10 * MINUTE
    events: Annotated[int, Bounds(10, 1_000_000), Doc("Events kept per session.")] = 1000
    events_bytes: Annotated[
        int, Bounds(64 * KIB, 1024 * MIB), Doc("Their size together, in bytes.")
    ] = 4 * MIB
    events_ms: Annotated[int, Bounds(SECOND, DAY), Doc("How long an event is kept.")] = 30 * MINUTE
    facts: Annotated[
        int,
        Bounds(0, 10_000),  # of so many, those that go first are found while others wait
        Doc(
            "Facts kept per session, for its timeline on the page, of about 256 bytes each; what "
            "is over goes first. 0: there are no timelines."
        ),
    ] = 5000
    facts_in_all: Annotated[
        int,
        Bounds(100, 1_000_000),
        Doc("The same of all sessions together; of those that have ended they go first."),
    ] = 100_000
    notifications: Annotated[
        int, Bounds(1, 100_000), Doc("Notifications kept per server, together at most 1 MiB.")
    ] = 100
    logs: Annotated[int, Bounds(1, 100_000), Doc("Log lines kept per server.")] = 500
    log_bytes: Annotated[
        int, Bounds(256, MIB), Doc("A longer log line is cut to this, in bytes.")
    ] = 16 * KIB
    message: Annotated[
        int, Bounds(64 * KIB, 1024 * MIB), Doc("One line or body of a server, in bytes.")
    ] = 16 * MIB
    body: Annotated[int, Bounds(4 * KIB, 1024 * MIB), Doc("A client's request, in bytes.")] = (
        4 * MIB
    )
    values: Annotated[
        int,
        Bounds(10_000, 100_000_000),
        Doc("Values in one message of anybody; lists and objects count twice."),
    ] = 1_000_000
    body_values: Annotated[
        int,
        Bounds(10_000, 100_000_000),
        Doc("Values in one message of a client, if that is less: no model writes so many."),
    ] = 100_000

    @property
    def of_clients(self) -> Measure:
        """What one message of theirs may be."""
        if self.body_values < self.values:
            return Measure(self.body, self.body_values, "limits.body_values")
        return Measure(self.body, self.values)

    @property
    def of_servers(self) -> Measure:
        return Measure(self.message, self.values)


@frozen
class ResultSettings:
    """Answers of servers that are too long to be shown: they are kept, and shown as a preview."""

    inline_bytes: Annotated[
        int, Bounds(0, 1024 * MIB), Doc("Of an answer, in bytes, that is shown whole; 0: any is.")
    ] = 16 * KIB
    bytes: Annotated[
        int, Bounds(64 * KIB, 16_384 * MIB), Doc("What is kept per session, in bytes.")
    ] = 256 * MIB
    keep_ms: Annotated[int, Bounds(SECOND, DAY), Doc("How long it is kept.")] = 30 * MINUTE


@frozen
class NativeSettings:
    """The view ``native``: tools of all servers under names of their own."""

    max_name: Annotated[
        int,
        Bounds(16, 128),
        Doc("Characters of a name; clients put their own before it, and some stop at 64 of both."),
    ] = 45
    max_tools: Annotated[
        int,
        Bounds(0, 100_000),
        Doc("Tools of servers that are listed; some clients stop at 128 of all."),
    ] = 100


@frozen
class Health:
    """Whether silent connections still work."""

    interval_ms: Annotated[int, Bounds(SECOND, DAY), Doc("The pause between checks.")] = 2 * MINUTE


@frozen
class Codemode:
    """What a script of codemode_execute may use up."""

    calls: Annotated[
        int, Bounds(1, 10_000), Doc("Calls that a script may make, refused ones too.")
    ] = 100
    cpu_ms: Annotated[
        int,
        Bounds(10, 10 * MINUTE),
        Doc("How long a script may compute; waiting for calls does not count."),
    ] = 10 * SECOND
    memory: Annotated[
        int, Bounds(MIB, 4096 * MIB), Doc("What a script may keep at once, in bytes.")
    ] = 64 * MIB


_TOKEN = r"[!-~]+"


@frozen
class Token:
    """A bearer token, and what its holder sees."""

    token: Annotated[
        str, Pattern(_TOKEN, "visible ASCII characters"), Secret(), Doc("What its holder sends.")
    ]
    view: Annotated[
        str | None,
        Doc("The view of a client whose URL names none; ``?view=`` is for all that do."),
    ] = None
    metrics: Annotated[
        bool, Doc("Whether it may read ``/metrics``, which tells of everybody: for a monitor.")
    ] = False


@frozen
class Http:
    """Who may talk to us over HTTP."""

    allowed_hosts: Annotated[
        tuple[str, ...],
        Pattern(_HOST, "a host, or host:port"),
        Doc("Names clients may call us by, beside those we are bound to."),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Pattern(_ORIGIN, 'an origin such as "https://example.org"'),
        Doc("Web pages that may call us, as ``https://host[:port]``."),
    ] = ()
    tokens: Annotated[
        Mapping[str, str | Token],
        Pattern(_TOKEN, "visible ASCII characters"),
        Secret(),
        Doc("Bearer tokens, by the name of their holder; each a string, or an object with more."),
    ] = attrs.field(factory=dict)

    @property
    def bearers(self) -> Mapping[str, str]:
        """The tokens alone."""
        return {
            name: said if isinstance(said, str) else said.token
            for name, said in self.tokens.items()
        }

    def view_of(self, principal: str) -> str | None:
        """What is shown to who asks for no view, if that is said."""
        said = self.tokens.get(principal)
        return said.view if isinstance(said, Token) else None

    def reads_metrics(self, principal: str) -> bool:
        """Whether who is not the operator may read what is counted of everybody."""
        said = self.tokens.get(principal)
        return isinstance(said, Token) and said.metrics

    def problems(self) -> Iterator[Problem]:
        holders: dict[str, str] = {}
        for name, token in self.bearers.items():
            if not re.fullmatch(NAME, name):
                yield Problem(join("tokens", name), "is not a name")
            elif name in (OWN, LOCAL):
                yield Problem(
                    join("tokens", name), "is the name of this daemon's operator, take another"
                )
            if (first := holders.setdefault(token, name)) != name:
                yield Problem(join("tokens", name), f"is the token of {show(first)}, too")


@frozen
class Defaults:
    """What holds for servers that say nothing else."""

    start: Annotated[Start, STARTS] = "auto"
    idle_stop_ms: Annotated[int | None, Bounds(0, 30 * DAY), IDLE_STOPS] = None
    scope: Annotated[Scope, SCOPES] = "session"
    linger_ms: Annotated[int, Bounds(0, DAY), LINGERS] = 30 * SECOND
    share_logs: Annotated[bool, SHARED_LOGS] = False


def with_defaults(
    server: Server, defaults: Defaults, said: Mapping[str, object] = _NOTHING
) -> Server:
    """*server*, whose entry has *said* so much; null says nothing."""
    changes = {
        a.name: getattr(defaults, a.name)
        for a in attrs.fields(Defaults)
        if said.get(a.name) is None
    }
    if server.url is not None:
        changes.pop("idle_stop_ms", None)  # which is of programs
    if server.propagate_session is not None:
        changes.pop("scope", None)  # it wants to know which session calls
    return attrs.evolve(server, **changes)


@frozen
class RelaySettings:
    """Questions of servers to clients that can answer them by themselves."""

    elicitation: Annotated[
        RelayTo,
        Doc("``auto``: a client with dialogs of its own is asked; ``tools``: none is."),
    ] = "auto"
    sampling: Annotated[
        RelayTo, Doc("``auto``: a client that can sample by itself is asked; ``tools``: none is.")
    ] = "auto"
    views: Annotated[
        Mapping[str, ViewRelay],
        Doc(
            'What is otherwise for clients with a view: ``{"native": {…}}``; ``server`` is that of '
            "clients that see one server as it is."
        ),
    ] = attrs.field(factory=dict)

    def of(self, view: str, kind: Literal["elicitation", "sampling"]) -> RelayTo:
        """Of clients with that view, where the server's own entry says nothing."""
        said: RelayTo | None = getattr(self.views.get(view), kind, None)
        general: RelayTo = getattr(self, kind)
        return said or general

    def problems(self) -> Iterator[Problem]:
        for name in self.views.keys() - {*VIEWS, ONE_SERVER}:
            there = ", ".join((*VIEWS, ONE_SERVER))
            yield Problem(join("views", name), f"no view {name!r}; there are {there}")


@frozen
class PageSettings:
    """The page for people, at ``/`` of a daemon."""

    payloads: Annotated[
        bool,
        Doc(
            "Whether it shows arguments and results of calls to who asks for them, and what their "
            "servers say of them meanwhile and of their failure."
        ),
    ] = True


@frozen
class Telemetry:
    """What a collector of OpenTelemetry is sent (OTLP over HTTP); see :doc:`/howto/observability`.

    Read at the start only.
    """

    traces: Annotated[bool, Doc("A span for each request, of clients and to servers.")] = False
    metrics: Annotated[bool, Doc("How long those requests take.")] = False
    endpoint: Annotated[
        str | None,
        Pattern(r"https?://\S+", "a URL such as http://127.0.0.1:4318"),
        Doc(
            "Its base URL, in place of ``OTEL_EXPORTER_OTLP_ENDPOINT``; everything else is said by "
            "the ``OTEL_…`` variables."
        ),
    ] = None

    def problems(self) -> Iterator[Problem]:
        if (self.traces or self.metrics) and not all(map(_is_here, EXPORTERS)):
            which = "traces" if self.traces else "metrics"
            yield Problem(
                which, "needs packages that are not here: pip install 'emceepee-trio[otel]'"
            )


EXPORTERS = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
"""What sends traces; an extra."""


def _is_here(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # nor is what it would be in
        return False


ContextIn: TypeAlias = Literal["auto", "content", "structured"]


@frozen
class Config:
    """A whole configuration; without arguments, all defaults."""

    servers: Annotated[tuple[Server, ...], Doc("The servers.")] = ()
    limits: Limits = attrs.field(factory=Limits)
    health: Health = attrs.field(factory=Health)
    codemode: Codemode = attrs.field(factory=Codemode)
    http: Http = attrs.field(factory=Http)
    policy: Policy = attrs.field(factory=Policy)
    roots: Annotated[
        Roots | None,
        Doc(
            "Folders that servers are told to keep to: ``file://`` URIs, paths, or objects with "
            "``uri`` and ``name``; see :doc:`/security`."
        ),
    ] = None
    context: Annotated[
        Literal["full", "off"],
        Doc("Whether every response tells what is new, or only await_activity."),
    ] = "full"
    inherit_env: Annotated[
        More,
        FEW,
        VARIABLES,
        Doc(
            "Names or globs of variables of ours that programs get beside the usual ones; ``all``: "
            "every one that is not our own. See `Environment`_."
        ),
    ] = ()
    context_in: Annotated[
        ContextIn,
        Doc(
            "Where a response says so that has structuredContent: in its content, in there under "
            "the key ``emceepee``, or where the client is known to show it to its model."
        ),
    ] = "auto"
    shutdown_grace_ms: Annotated[
        int, Bounds(0, 10 * MINUTE), Doc("How long what is under way may take at the end.")
    ] = 10 * SECOND
    defaults: Annotated[Defaults, Doc("What holds for all servers, see `defaults`_.")] = (
        attrs.field(factory=Defaults)
    )
    results: ResultSettings = attrs.field(factory=ResultSettings)
    relay: RelaySettings = attrs.field(factory=RelaySettings)
    native: NativeSettings = attrs.field(factory=NativeSettings)
    telemetry: Telemetry = attrs.field(factory=Telemetry)
    page: PageSettings = attrs.field(factory=PageSettings)

    def problems(self) -> Iterator[Problem]:
        yield from inheritance_problems(self.inherit_env)
        yield from roots_problems(self.roots)
