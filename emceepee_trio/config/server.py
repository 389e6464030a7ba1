"""What is said of one MCP server: how to reach it and how to treat it, as frozen classes.

Knows nothing of files, other programs' spellings, or the environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import urlsplit

import attrs

from ..model.problems import Expanded, Problem, join, show
from ..model.redact import redact_command, redact_url
from ..model.strict import field
from .bounds import DAY, HOUR, MINUTE, SECOND

OUR_NAME = "emceepee"
"""Taken: the events and resources of ours appear under it."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_HEADER_VALUE = r"([!-~]([\t -~]*[!-~])?)?"
_NOTHING: Mapping[str, str] = {}


@attrs.frozen
class Retry:
    """How a connection is tried again; as it stands, for child processes."""

    enabled: bool = field(True, doc="Whether to try again at all.")
    max_attempts: int | None = field(
        5, low=1, high=1_000_000, doc="Tries in a row before giving up; null for no end."
    )
    base_delay_ms: int = field(SECOND, low=10, high=HOUR, doc="The pause before the first try.")
    max_delay_ms: int = field(MINUTE, low=10, high=DAY, doc="The longest pause.")
    multiplier: float = field(2.0, low=1, high=100, doc="How much longer each pause is.")
    jitter: float = field(0.1, low=0, high=1, doc="Share of a pause by which it is moved.")

    def problems(self) -> Iterator[Problem]:
        if self.max_delay_ms < self.base_delay_ms:
            yield Problem("max_delay_ms", f"less than base_delay_ms, {self.base_delay_ms}")


@attrs.frozen
class Reconnect(Retry):
    """The same for URLs, which come back by themselves: no end of tries, longer pauses."""

    max_attempts: int | None = field(
        None, low=1, high=1_000_000, doc="Tries in a row before giving up; null for no end."
    )
    max_delay_ms: int = field(3 * MINUTE, low=10, high=DAY, doc="The longest pause.")


@attrs.frozen
class Server:
    """One MCP server: a URL or a command, and how to treat it."""

    name: str = field(doc="What clients call it: letters, digits, ``.``, ``_``, ``-``.")
    url: str | None = field(None, secret=True, doc="Where it listens, http or https.")
    headers: Mapping[str, str] = field(_NOTHING, secret=True, doc="Sent with every request.")
    command: str | None = field(None, secret=True, doc="The program to start instead.")
    args: tuple[str, ...] = field((), secret=True, doc="Its arguments.")
    env: Mapping[str, str] = field(
        _NOTHING, secret=True, doc="Added to its otherwise minimal environment."
    )
    cwd: str | None = field(None, doc="Where it runs; relative to the file's folder.")
    type: Literal["stdio", "http", "sse"] | None = field(
        None, doc="The transport, if it shall not be inferred."
    )
    disabled: bool = field(False, doc="Keep the entry, leave the server alone.")
    allowed_tools: tuple[str, ...] | None = field(
        None, doc="Names or globs; any other tool is as if missing. All, if not given."
    )
    start: Literal["eager", "lazy"] = field(
        "eager", doc="Connect when a session begins, or when it first needs the server."
    )
    era: Literal["auto", "handshake", "modern"] = field(
        "auto", doc="Which MCP it speaks, if that shall not be found out."
    )
    connect_timeout_ms: int = field(
        30 * SECOND, low=100, high=10 * MINUTE, doc="How long one try to connect may take."
    )
    call_timeout_ms: int | None = field(
        None, low=100, high=DAY, doc="A hard end of every call, promoted or not."
    )
    restart: Retry = attrs.field(
        factory=Retry, metadata={"doc": "When a command ends or fails: see `restart`_."}
    )
    reconnect: Reconnect = attrs.field(
        factory=Reconnect, metadata={"doc": "When a URL is lost or fails: see `reconnect`_."}
    )
    propagate_session: str | None = field(
        None,
        pattern=_TOKEN,
        expected="the name of a header",
        doc="A header that tells a URL which session calls.",
    )

    @property
    def transport(self) -> Literal["stdio", "http", "sse"]:
        if self.type is not None:
            return self.type
        if self.url is None:
            return "stdio"
        # As FastMCP and most published examples of that transport have it.
        return "sse" if re.search(r"/sse/?([?#]|$)", self.url) else "http"

    @property
    def target(self) -> str:
        """What it connects to, fit to be shown."""
        if self.url is not None:
            return redact_url(self.url)
        return redact_command((self.command or "", *self.args))

    def problems(self) -> Iterator[Problem]:
        yield from self._name_problems()
        if self.url is not None and self.command is not None:
            yield Problem("", "has both a url and a command; it takes exactly one")
        elif self.url is None and self.command is None:
            yield Problem("", "needs a url or a command")
        elif self.url is not None:
            yield from self._foreign_to("url", "args", "env", "cwd", "restart")
            if self.type == "stdio":
                yield Problem("type", '"stdio" needs a command, this server has a url')
            if complaint := _url_complaint(self.url):
                yield Problem("url", complaint)
        else:
            yield from self._foreign_to("command", "headers", "reconnect", "propagate_session")
            if self.type in ("http", "sse"):
                yield Problem("type", f"{show(self.type)} needs a url, this server has a command")
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
