"""What a configuration says: every accepted shape, variables, paths, and every problem at once.

What the settings mean is in ``settings``, what other programs call them in ``dialects``. A server
that a client adds keeps to the same rules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ...errors import EmceepeeError
from ...model.json import jsonc
from ...model.json.problems import Expanded, Invalid, Problem, did_you_mean, join, kind, show
from ...model.json.strict import structure
from ...model.text.variables import NotSet, expand, unbraced
from ..roots import resolved
from ..server import Lacking, Server
from ..settings import Config, with_defaults
from .dialects import ALIASES, IGNORED_AT_TOP, SERVERS, SHARED, translate
from .ourselves import is_us
from .paths import is_relative, resolved_policy, resolved_server

_KNOWN = ("servers", "mcpServers", "mcpClients")
_SETTINGS = tuple(a.name for a in attrs.fields(Config) if a.name != "servers")


class ConfigError(EmceepeeError):
    """A configuration that cannot be used; every problem is a line, which names the *file*."""

    def __init__(self, problems: Sequence[Problem], file: Path | None = None) -> None:
        self.problems = list(problems)
        where = "" if file is None else f"{file}: "
        self.lines = [f"{where}{problem}" for problem in problems]
        super().__init__("\n".join(self.lines))


@attrs.frozen
class Loaded:
    """A configuration, and what its author should know about it."""

    config: Config
    warnings: tuple[str, ...] = ()


def parse(
    data: object, *, folder: Path, environ: Mapping[str, str], ports: Collection[int] = ()
) -> Loaded:
    """Make a configuration of *data*; relative paths in it start at *folder*.

    Raises:
        ConfigError: with every problem.
    """
    reading = _Reading(folder, environ, ports)
    try:
        config = reading.config(data)
    except RecursionError:
        raise ConfigError([Problem("", "nested too deeply")]) from None
    if any(not isinstance(problem, _Unset) for problem in reading.problems):
        raise ConfigError(reading.problems)
    reading.warnings += [f"{problem}; so it is disabled" for problem in reading.problems]
    return Loaded(config, tuple(reading.warnings))


def server_from_arguments(arguments: Mapping[str, object]) -> Server:
    """A server that a client adds: the same rules, but neither variables nor a folder.

    Raises:
        ConfigError: with every problem.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        server = resolved_server(structure(given, Server, aliases=ALIASES), None, os.environ)
    except Invalid as exc:
        raise ConfigError(exc.problems) from None
    problems = []
    if server.cwd is not None and not Path(server.cwd).is_absolute():
        problems.append(Problem("cwd", f"expected an absolute path, got {show(server.cwd)}"))
    if server.command is not None and is_relative(server.command):
        problems.append(Problem("command", "expected an absolute path, or a name on the PATH"))
    if problems:
        raise ConfigError(problems)
    return server


class _Unset(Problem):
    """It keeps one server from being started, and is no mistake of the file."""


@attrs.define(eq=False)
class _Reading:
    """One configuration being read; what is wrong with it gathers here."""

    folder: Path
    environ: Mapping[str, str]
    ports: Collection[int]
    problems: list[Problem] = attrs.field(factory=list, init=False)
    warnings: list[str] = attrs.field(factory=list, init=False)
    servers: dict[str, tuple[str, Server | None, Mapping[str, object]]] = attrs.field(
        factory=dict, init=False
    )
    """By name: where it is written, what became of it, and what it says, in our words."""

    def problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def config(self, data: object) -> Config:
        if not isinstance(data, Mapping):
            self.problem("", f"expected an object, got {kind(data)}")
            return Config()
        self.repeats(data, "")
        settings, strangers = {}, []
        for key, value in data.items():
            if key == "mcp" and _is_of_vscode(value):
                self.collect("mcp.servers", value["servers"])
            elif key in SERVERS:
                self.collect(key, value)
            elif ALIASES.get(key, key) in _SETTINGS:
                settings[key] = self.expanded(value, join("", key), self.problems)
            elif key in IGNORED_AT_TOP:
                self.warnings.append(f"{key}: ignored, it means nothing here")
            elif key != "$schema":
                strangers.append(key)
        self.unknown(strangers, [key for key in SHARED if key in data])
        try:
            config = structure(settings, Config, aliases=ALIASES)
        except Invalid as exc:
            unclear = {problem.path for problem in self.problems}
            self.problems += [problem for problem in exc.problems if problem.path not in unclear]
            return Config()
        if len(self.servers) > config.limits.servers:
            self.problem(
                "limits.servers",
                f"{len(self.servers)} servers, expected at most {config.limits.servers}",
            )
        made = tuple(
            with_defaults(server, config.defaults, said).with_inherited(config.inherit_env)
            for _, server, said in self.servers.values()
            if server is not None
        )
        policy = resolved_policy(config.policy, self.folder, self.environ)
        if config.roots is not None:
            roots = tuple(resolved(root, self.folder, self.environ) for root in config.roots)
            config = attrs.evolve(config, roots=roots)
        self.warnings += [str(attrs.evolve(p, path=f"policy.{p.path}")) for p in policy.doubts()]
        return attrs.evolve(config, servers=made, policy=policy)

    def unknown(self, keys: Sequence[str], shared: Sequence[str]) -> None:
        """Keys at the top that are not ours: another program's, if it has servers under *shared*.

        What a person may have misspelled is a mistake, if we have a name in common.
        """
        known = (*_KNOWN, *_SETTINGS)
        hints = {key: did_you_mean(key, known, cutoff=0.8) for key in keys}
        ours = not shared or shared == ["mcpServers"]
        others = [key for key in keys if shared and not (ours and hints[key])]
        for key in keys:
            if key not in others:
                self.problem("", f"unknown key {show(key)}{did_you_mean(key, known)}")
        if others:
            shown = ", ".join(map(show, others[:5])) + (", …" if others[5:] else "")
            self.warnings.append(f"ignored what is not ours: {shown}")

    def collect(self, key: str, value: object) -> None:
        if isinstance(value, Mapping):
            self.repeats(value, key)
            for name, entry in value.items():
                self.add(entry, join(key, name), name, key)
        elif isinstance(value, list) and key == "servers":
            for i, entry in enumerate(value):
                self.add(entry, join(key, i), None, key)
        else:
            expected = "a list or an object" if key == "servers" else "an object"
            self.problem(key, f"expected {expected}, got {kind(value)}")

    def add(self, written: object, path: str, key: str | None, where: str) -> None:
        """Read one server under *where*; *key* is its name where names are keys."""
        if not isinstance(written, Mapping):
            return self.problem(path, f"expected an object, got {kind(written)}")
        self.repeats(written, path)
        entry = translate(written, path, where)
        if entry is None:
            self.warnings.append(f"{path}: skipped, it says neither a command nor a url")
            return None
        self.unbraced(entry.values, path)
        missing: list[Problem] = []
        values = {k: self.expanded(v, join(path, k), missing) for k, v in entry.values.items()}
        if is_us(key or values.get("name"), _in_our_words(values), self.ports):
            self.warnings.append(f"{path}: skipped, it is emceepee itself")
            return None
        self.warnings += entry.warnings
        self.problems += entry.problems
        if key is not None:
            if values.get("name", key) != key:
                self.warnings.append(f"{join(path, 'name')}: ignored, {show(key)} is the name")
            values["name"] = key
            missing = [problem for problem in missing if problem.path != join(path, "name")]
        name = values.get("name")
        server, wrong = self.built(values, path, unclear={problem.path for problem in missing})
        if values.get("disabled") is True:
            # It will not be started, so what its variables stand for does not matter.
            missing = []
            if server is None and not wrong and isinstance(name, str):
                server = Server(name, disabled=True)
        at_name = join(path, "name")
        unset = [p for p in missing if isinstance(p.message, NotSet) and p.path != at_name]
        if unset and isinstance(name, str):
            missing = [_Unset(p.path, p.message) if p in unset else p for p in missing]
            why = ", ".join(f"{p.message} ({p.path.removeprefix(path).lstrip('.')})" for p in unset)
            server = Lacking.of(server or Server(name), why)
        self.problems += missing
        for problem in wrong:
            at_key = key is not None and problem.path == at_name
            self.problems.append(attrs.evolve(problem, path=path) if at_key else problem)
        if isinstance(name, str):
            if name in self.servers:
                where = path if key is not None else at_name
                also = self.servers[name][0]
                return self.problem(where, f"duplicate name {show(name)}, also at {also}")
            self.servers[name] = (path, server, _in_our_words(values))
        return None

    def built(
        self, values: Mapping[str, Any], path: str, *, unclear: Collection[str]
    ) -> tuple[Server | None, list[Problem]]:
        """The server, or what is wrong with it beside what is *unclear* anyway."""
        try:
            server = structure(values, Server, path=path, aliases=ALIASES)
        except Invalid as exc:
            return None, [problem for problem in exc.problems if problem.path not in unclear]
        return resolved_server(server, self.folder, self.environ), []

    def expanded(self, value: Any, path: str, problems: list[Problem]) -> Any:
        """*value* with the variables filled in, in every string of it."""
        if isinstance(value, Mapping):
            self.repeats(value, path)
            return {k: self.expanded(v, join(path, k), problems) for k, v in value.items()}
        if isinstance(value, list):
            return [self.expanded(v, join(path, i), problems) for i, v in enumerate(value)]
        if not isinstance(value, str):
            return value
        text, complaints = expand(value, self.environ)
        problems += [Problem(path, complaint) for complaint in complaints]
        return text if text == value else Expanded.of(text, value)

    def unbraced(self, values: Mapping[str, Any], path: str) -> None:
        """Warn of what a shell would take for a variable, where no shell can be meant."""
        texts: dict[str, object] = {}
        for key in ("headers", "env"):
            if isinstance(inner := values.get(key), Mapping):
                texts |= {join(join(path, key), name): text for name, text in inner.items()}
        if isinstance(args := values.get("args"), list):
            whole = re.compile(r"(-[\w-]+=)?\$\w+")
            texts |= {
                join(join(path, "args"), i): arg
                for i, arg in enumerate(args)
                if isinstance(arg, str) and whole.fullmatch(arg)
            }
        texts |= {join(path, key): values[key] for key in values if ALIASES.get(key, key) == "url"}
        for where, text in texts.items():
            if isinstance(text, str) and (name := unbraced(text)):
                self.warnings.append(
                    f"{where}: ${name[:100]} is taken as it is written; "
                    f"the variable would be ${{{name[:100]}}}"
                )

    def repeats(self, value: Mapping[str, object], path: str) -> None:
        for key in jsonc.repeated_keys(value):
            self.problem(join(path, key), "given twice")


def _is_of_vscode(value: object) -> bool:
    """Whether ``mcp`` holds the object of VS Code and not, as elsewhere, servers by their names."""
    servers = value.get("servers") if isinstance(value, Mapping) else None
    return isinstance(servers, Mapping) and not {"type", "command", "url"} & servers.keys()


def _in_our_words(values: Mapping[str, Any]) -> dict[str, Any]:
    return {ALIASES.get(key, key): value for key, value in values.items()}
