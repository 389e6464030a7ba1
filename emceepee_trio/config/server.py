"""What is said of one MCP server: how to reach it, and how to treat it (``treatment``).

Knows nothing of files, other programs' spellings, or the environment.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

import attrs

from ..model.inherited import More, is_ours, together
from ..model.json.fields import Bounds, Doc, Most, Pattern, Secret, frozen
from ..model.json.problems import Expanded, Problem, join, show
from .bounds import (
    DAY,
    MAX_ARGUMENT,
    MAX_ARGUMENTS,
    MAX_HEADER,
    MAX_HEADERS,
    MAX_NAME,
    MAX_PATH,
    MAX_SERVER,
    MAX_URI,
    MINUTE,
    SECOND,
)
from .roots import Roots, roots_problems
from .seen import seen_command, seen_url
from .treatment import (
    ALLOWED,
    IDLE_STOPS,
    LINGERS,
    SCOPES,
    SHARED_LOGS,
    STARTS,
    Reconnect,
    Retry,
    Scope,
    ServerNative,
    ServerRelay,
    ServerResults,
    Start,
    too_many_globs,
)

OUR_NAME = "emceepee"
"""Taken: the events and resources of ours appear under it."""

ON_DEMAND = "emceepee/on_demand"
"""A capability of clients whose session starts no server that it does not need."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE = r"([!-~]([\t -~]*[!-~])?)?"
_NOTHING: Mapping[str, str] = {}

A_NAME = Most(most_characters=MAX_NAME)
A_URL = Most(most_characters=MAX_URI)
A_PATH = Most(most_characters=MAX_PATH)
ARGS = Most(MAX_ARGUMENTS, MAX_ARGUMENT)
HEADERS = Most(MAX_HEADERS, MAX_HEADER)
FEW = Most(MAX_HEADERS, MAX_NAME)
"""Marks of what a server is made of; a tool that takes one has the same."""
VARIABLES = Pattern(r"[A-Za-z0-9_()*?\[\]!-]+", "the name of a variable, or a glob")
"""As Windows has them, too."""


@frozen
class Server:
    """One MCP server: a URL or a command, and how to treat it."""

    name: Annotated[str, A_NAME, Doc("What clients call it: letters, digits, ``.``, ``_``, ``-``.")]
    url: Annotated[str | None, A_URL, Secret(), Doc("Where it listens, http or https.")] = None
    headers: Annotated[Mapping[str, str], HEADERS, Secret(), Doc("Sent with every request.")] = (
        _NOTHING
    )
    command: Annotated[str | None, A_PATH, Secret(), Doc("The program to start instead.")] = None
    args: Annotated[tuple[str, ...], ARGS, Secret(), Doc("Its arguments.")] = ()
    env: Annotated[
        Mapping[str, str], ARGS, Secret(), Doc("Added to what it inherits of our environment.")
    ] = _NOTHING
    inherit_env: Annotated[
        More | None,
        FEW,
        VARIABLES,
        Doc(
            "Names or globs of variables of ours that it gets beside the usual ones and those of "
            "the file's ``inherit_env``; ``all``: every one that is not our own."
        ),
    ] = None
    cwd: Annotated[str | None, A_PATH, Doc("Where it runs; relative to the file's folder.")] = None
    type: Annotated[
        Literal["stdio", "http", "sse"] | None, Doc("The transport, if it shall not be inferred.")
    ] = None
    description: Annotated[
        str | None, A_PATH, Doc("What it is good for: clients are told, before it is connected.")
    ] = None
    disabled: Annotated[bool, Doc("Keep the entry, leave the server alone.")] = False
    allowed_tools: Annotated[
        tuple[str, ...] | None,
        ALLOWED,
        Doc("Names or globs; any other tool is as if missing. All, if not given."),
    ] = None
    denied_tools: Annotated[
        tuple[str, ...],
        ALLOWED,
        Doc("Names or globs of tools that are as if missing, also if they are allowed."),
    ] = ()
    roots: Annotated[
        Roots | None, Doc("Folders that it is told to keep to; if not given, those of all.")
    ] = None
    start: Annotated[Start, STARTS] = "auto"
    era: Annotated[
        Literal["auto", "handshake", "modern"],
        Doc("Which MCP it speaks, if that shall not be found out."),
    ] = "auto"
    connect_timeout_ms: Annotated[
        int, Bounds(100, 10 * MINUTE), Doc("How long one try to connect may take.")
    ] = 30 * SECOND
    call_timeout_ms: Annotated[
        int | None, Bounds(100, DAY), Doc("A hard end of every call, promoted or not.")
    ] = None
    reissue: Annotated[
        Literal["join", "run"],
        Doc(
            "What becomes of a call that a client of the modern era sends again, since it has lost "
            "the stream of the first: it waits for that one, or is one more. See "
            "``limits.reissue_ms``."
        ),
    ] = "join"
    restart: Annotated[Retry, Doc("When a command ends or fails: see `restart`_.")] = attrs.field(
        factory=Retry
    )
    reconnect: Annotated[Reconnect, Doc("When a URL is lost or fails: see `reconnect`_.")] = (
        attrs.field(factory=Reconnect)
    )
    propagate_session: Annotated[
        str | None,
        A_NAME,
        Pattern(_TOKEN, "the name of a header"),
        Doc("A header that tells a URL which session calls."),
    ] = None
    idle_stop_ms: Annotated[int | None, Bounds(0, 30 * DAY), IDLE_STOPS] = None
    scope: Annotated[Scope, SCOPES] = "session"
    linger_ms: Annotated[int, Bounds(0, DAY), LINGERS] = 30 * SECOND
    share_logs: Annotated[bool, SHARED_LOGS] = False
    max_concurrent: Annotated[
        int | None,
        Bounds(1, 10_000),
        Doc(
            "Of a shared server, how many requests it is given at once; sessions take turns for "
            "the rest. No bound, if not given."
        ),
    ] = None
    results: Annotated[
        ServerResults, Doc("Which of its answers are shown whole: see `results of a server`_.")
    ] = attrs.field(factory=ServerResults)
    relay: Annotated[
        ServerRelay, Doc("Which of its questions clients are asked: see `relay of a server`_.")
    ] = attrs.field(factory=ServerRelay)
    native: Annotated[
        ServerNative, Doc("Which of its tools are listed first: see `native of a server`_.")
    ] = attrs.field(factory=ServerNative)

    @property
    def transport(self) -> Literal["stdio", "http", "sse"]:
        if self.type is not None:
            return self.type
        if self.url is None:
            return "stdio"
        # As FastMCP and most published examples of that transport have it.
        return "sse" if re.search(r"/sse/?([?#]|$)", self.url) else "http"

    @functools.cached_property
    def target(self) -> str:
        """What it connects to, fit to be shown."""
        if self.url is not None:
            return seen_url(self.url)
        return seen_command((self.command or "", *self.args))

    def problems(self) -> Iterator[Problem]:
        """What is wrong between the fields. Whoever adds a server pays for its length once only."""
        texts = (*self.args, *self.headers, *self.headers.values(), *self.env, *self.env.values())
        if (size := sum(map(len, texts))) > MAX_SERVER:
            yield Problem("", f"too long: {size} characters in all, at most {MAX_SERVER}")
            return
        tools = {"allowed_tools": self.allowed_tools or (), "denied_tools": self.denied_tools}
        for key, patterns in tools.items():
            yield from too_many_globs(key, patterns)
        yield from roots_problems(self.roots)
        yield from self._name_problems()
        if self.url is not None and self.command is not None:
            yield Problem("", "has both a url and a command; it takes exactly one")
        elif self.url is None and self.command is None:
            yield Problem("", "needs a url or a command")
        elif self.url is not None:
            programs = ("args", "env", "inherit_env", "cwd", "restart", "idle_stop_ms")
            yield from self._foreign_to("url", *programs)
            if self.type == "stdio":
                yield Problem("type", '"stdio" needs a command, this server has a url')
            if complaint := _url_complaint(self.url):
                yield Problem("url", complaint)
        else:
            yield from self._foreign_to("command", "headers", "reconnect", "propagate_session")
            if self.type in ("http", "sse"):
                yield Problem("type", f"{show(self.type)} needs a url, this server has a command")
        if self.scope == "principal" and self.propagate_session is not None:
            yield Problem(
                "propagate_session",
                "tells which session calls, which nobody knows of a "
                'server that they share; it takes "scope": "session"',
            )
        for name, value in self.headers.items():
            if not re.fullmatch(_TOKEN, name):
                yield Problem(join("headers", name), "is not the name of a header")
            elif not re.fullmatch(_HEADER_VALUE, value):
                yield Problem(
                    join("headers", name),
                    "a header holds visible ASCII characters, and spaces only between them",
                )
        yield from self._process_problems()

    def _name_problems(self) -> Iterator[Problem]:
        if self.name == OUR_NAME:
            yield Problem("name", f"{show(self.name)} is our own name, take another")
        elif not re.fullmatch(NAME, self.name):
            # What stands for a variable is not repeated.
            plain = "" if isinstance(self.name, Expanded) else self.name
            better = re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-._")[:64]
            yield Problem(
                "name",
                'a name is 1 to 64 letters, digits, ".", "_", "-" and starts with a letter or '
                f"digit, got {show(self.name)}" + (f"; try {show(better)}" if better else ""),
            )

    def _foreign_to(self, kind: str, *names: str) -> Iterator[Problem]:
        """Keys that this kind of server has no use for; their author expects something of them."""
        plain = Server(self.name)
        for name in names:
            if getattr(self, name) != getattr(plain, name):
                yield Problem(name, f"means nothing to a server with a {kind}")

    def _process_problems(self) -> Iterator[Problem]:
        if self.command is not None and not self.command.strip():
            yield Problem("command", "is empty")
        texts = {"command": self.command or "", "cwd": self.cwd or ""}
        texts |= {join("args", i): arg for i, arg in enumerate(self.args)}
        texts |= {join("env", name): name + value for name, value in self.env.items()}
        for path, text in texts.items():
            if "\0" in text:
                yield Problem(path, "holds a NUL character")
        for name in self.env:
            if not name or "=" in name:
                yield Problem(join("env", name), "is not the name of a variable")
        yield from inheritance_problems(self.inherit_env)

    def with_inherited(self, more: More) -> Server:
        """As it is in a file that says *more* of all programs."""
        if self.command is None or not more:
            return self
        return attrs.evolve(self, inherit_env=together(more, self.inherit_env))


def inheritance_problems(more: More | None) -> Iterator[Problem]:
    for i, name in enumerate(() if more is None or more == "all" else more):
        if is_ours(name):
            yield Problem(
                join("inherit_env", i), f"{show(name)} is this daemon's own, no server gets it"
            )


@attrs.frozen
class Lacking(Server):
    """A server that is disabled for want of something that its file does not hold."""

    lacks: str = attrs.field(kw_only=True)
    """Why it cannot be used as it is, in a sentence."""

    @classmethod
    def of(cls, server: Server, lacks: str) -> Lacking:
        known = {a.name: getattr(server, a.name) for a in attrs.fields(Server)}
        return cls(**known | {"disabled": True}, lacks=lacks)


def _url_complaint(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        # Its words may quote the URL, and with it a password.
        return f"is not a URL ({'port' if 'port' in str(exc).lower() else 'host'})"
    if re.search(r"[\s\x00-\x1f\x7f]", url):
        return "is not a URL (white space)"
    if parts.scheme not in ("http", "https"):
        # A scheme that is not written there came out of a variable, and with it a password.
        written = url.written if isinstance(url, Expanded) else url
        scheme = f"{parts.scheme}:"
        is_shown = "//" in url and parts.scheme and written.lower().startswith(scheme)
        return "expected an http or https URL" + (f", got {show(scheme)}" if is_shown else "")
    if port == 0:
        return "is not a URL (port)"
    return None if parts.hostname else "is not a URL (host)"
