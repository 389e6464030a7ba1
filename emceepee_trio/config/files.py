"""Reading configurations: every accepted shape, variables, paths, and every problem at once.

What the settings mean is in ``settings``, what other programs call them in ``dialects``.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..errors import EmceepeeError
from ..model.json import jsonc
from ..model.json.problems import Expanded, Invalid, Problem, did_you_mean, join, kind, show
from ..model.json.strict import structure
from ..model.text.variables import NotSet, expand, unbraced
from ..sources import Sources, Unreadable
from .bounds import MAX_CONFIG_BYTES
from .dialects import ALIASES, IGNORED_AT_TOP, SERVERS, SHARED, translate
from .ourselves import is_us
from .policy import AllowedProgram, Policy
from .roots import resolved
from .server import Lacking, Server
from .settings import Config, with_defaults

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


def default_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a configuration is looked for if none is named."""
    home = environ.get("XDG_CONFIG_HOME")
    # Not Path.expanduser(), which fails where nobody knows of a home.
    return Path(home or os.path.expanduser("~/.config")) / "emceepee" / "config.json"  # noqa: PTH111 - see above


def load(
    path: Path,
    environ: Mapping[str, str] = os.environ,
    sources: Sources | None = None,
    *,
    ports: Collection[int] = (),
) -> Loaded:
    """Read the configuration at *path*, by *sources* if it is not for the first time.

    *ports* of this machine are those on which we listen ourselves.

    Raises:
        ConfigError: it is missing, unreadable, or wrong.
    """
    try:
        found = (sources or Sources()).read(path, MAX_CONFIG_BYTES)
        if len(found.content) > MAX_CONFIG_BYTES:
            raise ConfigError([Problem("", f"longer than {MAX_CONFIG_BYTES} bytes")], path)
        text = found.content.decode("utf-8-sig")
        data = read_text(text, path)
    except Unreadable as exc:
        raise ConfigError([Problem("", f"cannot read {path}: {exc}")]) from None
    except UnicodeDecodeError as exc:
        where = f"byte {exc.start}" if exc.start else "its first byte"
        raise ConfigError([Problem("", f"not UTF-8, see {where}")], path) from None
    except jsonc.SyntaxProblem as exc:
        raise ConfigError([Problem("", str(exc))], path) from None
    try:
        loaded = parse(data, folder=path.absolute().parent, environ=environ, ports=ports)
    except ConfigError as exc:
        raise ConfigError(exc.problems, path) from None
    if found.mode & stat.S_IWOTH and stat.S_ISREG(found.mode):
        warning = f"{path}: every user of this machine can write to it, and so have us run programs"
        loaded = attrs.evolve(loaded, warnings=(warning, *loaded.warnings))
    return loaded


def read_text(text: str, path: Path) -> object:
    """What the *text* of that file says.

    Raises:
        SyntaxProblem: nothing.
    """
    return _toml(text) if path.suffix == ".toml" else jsonc.loads(text)


def _toml(text: str) -> object:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise jsonc.SyntaxProblem("nested too deeply") from None
    except ValueError as exc:
        what, _, where = str(exc).rpartition(" (at ")
        what = f"{where.rstrip(')')}: {what[:1].lower()}{what[1:]}" if what else str(exc)
        raise jsonc.SyntaxProblem(what) from None


def load_default(
    environ: Mapping[str, str] = os.environ,
    sources: Sources | None = None,
    *,
    ports: Collection[int] = (),
) -> Loaded | None:
    """The configuration that nobody has named; None if there is none.

    Raises:
        ConfigError: there is something, and it cannot be used.
    """
    path = default_path(environ)
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ConfigError([Problem("", f"cannot read {path}: {reason}")]) from None
    return load(path, environ, sources, ports=ports)


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
        server = _resolved(structure(given, Server, aliases=ALIASES), None, os.environ)
    except Invalid as exc:
        raise ConfigError(exc.problems) from None
    problems = []
    if server.cwd is not None and not Path(server.cwd).is_absolute():
        problems.append(Problem("cwd", f"expected an absolute path, got {show(server.cwd)}"))
    if server.command is not None and _is_relative(server.command):
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
        policy = _resolved_policy(config.policy, self.folder, self.environ)
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
        return _resolved(server, self.folder, self.environ), []

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


def _resolved(server: Server, folder: Path | None, environ: Mapping[str, str]) -> Server:
    """With ``~`` and, if there is a *folder*, relative paths made absolute."""
    cwd, command = server.cwd, server.command
    if cwd is not None:
        cwd = _from(folder, _at_home(cwd, environ))
    if command is not None:
        command = _at_home(command, environ)
        if _is_relative(command):
            command = _from(folder, command)
    roots = server.roots
    if roots is not None and folder is not None:
        roots = tuple(resolved(root, folder, environ) for root in roots)
    return attrs.evolve(server, cwd=cwd, command=command, roots=roots)


def _resolved_policy(policy: Policy, folder: Path, environ: Mapping[str, str]) -> Policy:
    """With programs and folders spelled as those of :func:`_resolved`, to which they are held."""
    if policy.spawn != "allowlist":
        return policy

    def program(words: tuple[str, ...]) -> tuple[str, ...]:
        command = _at_home(words[0], environ)
        return (_from(folder, command) if _is_relative(command) else command, *words[1:])

    def resolved(entry: tuple[str, ...] | AllowedProgram) -> tuple[str, ...] | AllowedProgram:
        if not isinstance(entry, AllowedProgram):
            return program(entry)
        cwd = None if entry.cwd is None else _from(folder, _at_home(entry.cwd, environ))
        return attrs.evolve(entry, command=program(entry.command), cwd=cwd)

    return attrs.evolve(policy, spawn_allowlist=tuple(map(resolved, policy.spawn_allowlist)))


def _is_relative(command: str) -> bool:
    """A path that starts nowhere; a bare name is looked up on the PATH."""
    return "/" in command and not Path(command).is_absolute()


def _from(folder: Path | None, path: str) -> str:
    return str(folder / path) if folder is not None else path


def _at_home(path: str, environ: Mapping[str, str]) -> str:
    if (path == "~" or path.startswith("~/")) and environ.get("HOME"):
        return environ["HOME"] + path[1:]
    return path
