"""What clients may have us do when they add servers, and where that is less than it seems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from ..model.json.fields import Doc, Pattern, frozen
from ..model.json.problems import Problem, join, show
from ..model.text.globs import has_wildcard

_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"

RUNNERS = frozenset(
    {
        *("ash", "awk", "bash", "bun", "bunx", "busybox", "cargo", "dash", "deno", "dotnet", "env"),
        *("fish", "gawk", "go", "java", "ksh", "lua", "nice", "node", "nodejs", "nohup", "npm"),
        *("npx", "perl", "php", "pipx", "pnpm", "pnpx", "poetry", "python", "pypy", "ruby", "sh"),
        *("setsid", "ssh", "stdbuf", "sudo", "tclsh", "timeout", "ts-node", "tsx", "unshare", "uv"),
        *("uvx", "xargs", "yarn", "zsh"),
    }
)
"""Programs that run what their arguments, or their input, tell them to."""

CONTAINERS = frozenset({"docker", "nerdctl", "podman"})
"""The same, and any of their options may give away the machine."""

_SUBCOMMANDS = frozenset({"create", "dlx", "exec", "run", "tool", "x"})

_LOADERS = re.compile(
    r"BASH_ENV|BASH_FUNC_.*|CLASSPATH|DOTNET_.*|DYLD_.*|ENV|GIT_.*|JAVA_TOOL_OPTIONS|JDK_.*|LD_.*"
    r"|LUA_.*|NODE_.*|NPM_CONFIG_.*|OPENSSL_.*|PERL5.*|PIP_.*|PYTHON.*|RUBY.*|UV_.*|.*_PATH|SHELL"
    r"|IFS|HOME|TMPDIR",
    re.IGNORECASE,
)
"""Variables by which usual programs can be told to run something else. There are others."""


@frozen
class AllowedProgram:
    """A program that clients may have started, and what they may say beside its command line."""

    command: Annotated[tuple[str, ...], Doc("Its command line, a glob for each word.")]
    env: Annotated[
        tuple[str, ...],
        Pattern(_VARIABLE, "the name of a variable"),
        Doc("Variables that clients may set; no others."),
    ] = ()
    cwd: Annotated[
        str | None,
        Doc("The folder it runs in. Clients may name no other, and none if there is none."),
    ] = None

    def problems(self) -> Iterator[Problem]:
        if not self.command:
            yield Problem("command", "is empty")
        if "PATH" in self.env:
            yield Problem("env", '"PATH" would let clients choose the program')

    def doubts(self) -> Iterator[str]:
        """Why it may allow more than its author thinks."""
        if doubt := _doubt(self.command):
            yield doubt
        for name in self.env:
            if _LOADERS.fullmatch(name):
                yield f"with the variable {name} clients can have most programs run something else"


@frozen
class Policy:
    """What clients may have us do when they add servers."""

    spawn: Annotated[
        Literal["allow", "allowlist", "deny"] | None,
        Doc("Start programs. If not given: allow on stdio, loopback and Unix sockets, else deny."),
    ] = None
    spawn_allowlist: Annotated[
        tuple[tuple[str, ...] | AllowedProgram, ...],
        Doc(
            "Command lines that may be started; each a list of globs, one for each word, or an "
            "object that says more: see :doc:`/security`."
        ),
    ] = ()
    network: Annotated[
        Literal["restricted", "allow"],
        Doc(
            "Restricted: servers that clients add are connected to directly, never at link-local "
            "or cloud metadata addresses. Allow: as those of this file, anywhere, and by the "
            "proxies of the environment."
        ),
    ] = "restricted"

    configured: Annotated[
        Literal["all", "operator"],
        Doc(
            "Who may remove, disable or enable servers of this file, for everybody: ``all``: "
            "whoever has a token; ``operator``: who has the daemon's own, or needs none."
        ),
    ] = "all"

    roots: Annotated[
        Literal["allow", "narrow", "deny"] | None,
        Doc(
            "Set the roots that servers are told: any; only what is in the configured ones; none. "
            "If not given: narrow where roots are configured, else allow."
        ),
    ] = None

    @property
    def allowed(self) -> tuple[AllowedProgram, ...]:
        """The entries of the allowlist, each as an object."""
        return tuple(
            entry if isinstance(entry, AllowedProgram) else AllowedProgram(entry)
            for entry in self.spawn_allowlist
        )

    def problems(self) -> Iterator[Problem]:
        if self.spawn == "allowlist" and not self.spawn_allowlist:
            yield Problem("spawn_allowlist", 'is empty; spawn "deny" says the same more clearly')
        for i, words in enumerate(self.spawn_allowlist):
            if not words:
                yield Problem(join("spawn_allowlist", i), "is empty")

    def doubts(self) -> Iterator[Problem]:
        """Entries that may allow more than their author thinks."""
        if self.spawn == "allowlist":
            for i, entry in enumerate(self.allowed):
                for doubt in entry.doubts():
                    yield Problem(join("spawn_allowlist", i), doubt)


def _doubt(words: Sequence[str]) -> str | None:
    program, *rest = words
    name = program.rpartition("/")[2]
    if has_wildcard(name):
        return f"{show(program)} stands for any program of such a name"
    # As python3.11 and node22 are called, too.
    name = re.sub(r"[\d.-]+$", "", name)
    if name in CONTAINERS and any(map(has_wildcard, rest)):
        return f"{show(program)} with a wildcard starts anything, with any rights"
    if name not in RUNNERS:
        return None
    for word in rest:
        if has_wildcard(word) and not re.match(r"@[\w.-]+/", word):
            return f"{show(program)} runs what its arguments name: {show(word)} allows any program"
        if not word.startswith("-") and word not in _SUBCOMMANDS:
            return None  # this is what it runs; what follows are arguments of that
    return f"{show(program)} without the name of a program runs what it is told on its input"
