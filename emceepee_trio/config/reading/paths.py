"""Paths in a configuration, made absolute: from the folder of its file, or from our home."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from ..policy import AllowedProgram, Policy
from ..roots import resolved
from ..server import Server


def resolved_server(server: Server, folder: Path | None, environ: Mapping[str, str]) -> Server:
    """With ``~`` and, if there is a *folder*, relative paths made absolute."""
    cwd, command = server.cwd, server.command
    if cwd is not None:
        cwd = _from(folder, _at_home(cwd, environ))
    if command is not None:
        command = _at_home(command, environ)
        if is_relative(command):
            command = _from(folder, command)
    roots = server.roots
    if roots is not None and folder is not None:
        roots = tuple(resolved(root, folder, environ) for root in roots)
    return attrs.evolve(server, cwd=cwd, command=command, roots=roots)


def resolved_policy(policy: Policy, folder: Path, environ: Mapping[str, str]) -> Policy:
    """With programs and folders spelled as those of servers, to which they are held."""
    if policy.spawn != "allowlist":
        return policy

    def program(words: tuple[str, ...]) -> tuple[str, ...]:
        command = _at_home(words[0], environ)
        return (_from(folder, command) if is_relative(command) else command, *words[1:])

    def resolved(entry: tuple[str, ...] | AllowedProgram) -> tuple[str, ...] | AllowedProgram:
        if not isinstance(entry, AllowedProgram):
            return program(entry)
        cwd = None if entry.cwd is None else _from(folder, _at_home(entry.cwd, environ))
        return attrs.evolve(entry, command=program(entry.command), cwd=cwd)

    return attrs.evolve(policy, spawn_allowlist=tuple(map(resolved, policy.spawn_allowlist)))


def is_relative(command: str) -> bool:
    """A path that starts nowhere; a bare name is looked up on the PATH."""
    return "/" in command and not Path(command).is_absolute()


def _from(folder: Path | None, path: str) -> str:
    return str(folder / path) if folder is not None else path


def _at_home(path: str, environ: Mapping[str, str]) -> str:
    if (path == "~" or path.startswith("~/")) and environ.get("HOME"):
        return environ["HOME"] + path[1:]
    return path
