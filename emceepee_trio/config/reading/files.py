"""Files with a configuration: where one is looked for, how it is read, and what its text says.

What the data means that comes out of it is for ``documents``.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

import attrs

from ...model.json import jsonc
from ...model.json.problems import Problem
from ...sources import Sources, Unreadable
from ..bounds import MAX_CONFIG_BYTES
from .documents import ConfigError, Loaded, parse


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
