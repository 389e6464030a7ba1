"""The settings: every key, its default and its bounds, as frozen classes.

Those that bound what can be used up are in ``limits``, those of one server in ``server``. Knows
nothing of files, other programs' spellings, or the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Annotated, Literal, TypeAlias

import attrs

from ..model.inherited import More
from ..model.json.fields import Bounds, Doc, Pattern, Secret, frozen
from ..model.json.problems import Problem, join, show
from ..views import ONE_SERVER, VIEWS
from .bounds import DAY, KIB, MIB, MINUTE, SECOND
from .limits import Limits
from .policy import Policy
from .roots import Roots, roots_problems
from .server import FEW, NAME, VARIABLES, Server, inheritance_problems
from .treatment import (
    IDLE_STOPS,
    LINGERS,
    SCOPES,
    SHARED_LOGS,
    STARTS,
    RelayTo,
    Scope,
    Start,
    ViewRelay,
)

OWN = "token"
"""Taken: the principal of the one token that the daemon was started with, or minted."""
LOCAL = "local"
"""Taken: the principal of everybody, where no token is needed."""

_NOTHING: Mapping[str, object] = {}
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?"
_ORIGIN = rf"[a-z][a-z0-9+.-]*://{_HOST}"


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
