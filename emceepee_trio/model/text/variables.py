"""Variables in strings: ``${VAR}``, ``${env:VAR}``, ``${VAR:-default}``; ``$${`` is just ``${``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}?")
_VARIABLE = re.compile(r"(env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)

EDITORS = frozenset({"workspaceFolder", "workspaceFolderBasename", "pathSeparator", "cwd", "/"})
"""Names that VS Code and Cursor fill in; nothing here is a workspace."""


class NotSet(str):
    """A complaint that is about what is not here, not about the text."""

    __slots__ = ()


_BARE = re.compile(r"(?<![$\w\\])\$([A-Za-z_][A-Za-z0-9_]*)")


def unbraced(text: str) -> str | None:
    """A variable in *text* as shells have it, ``$NAME``, which is nothing here."""
    found = _BARE.search(text)
    return None if found is None else found[1]


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """*text* with its variables filled in, and what is wrong with them; those stay as they are."""
    complaints: list[str] = []

    def value(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        filled = _value(found[0], found[1], environ)
        if isinstance(filled, str):
            return filled
        complaints.append(filled[0])
        return found[0]

    return _REFERENCE.sub(value, text), complaints


def _value(written: str, inner: str, environ: Mapping[str, str]) -> str | tuple[str]:
    """What it stands for, or a complaint."""
    if not written.endswith("}"):
        return ('"${" without its "}"; write "$${" if it is meant literally',)
    variable = _VARIABLE.fullmatch(inner)
    if variable is not None:
        prefix, name, default = variable.groups()
        # As in a shell, ":-" also stands in for an empty value.
        if found := environ.get(name, "" if default is None else default) or default:
            return found
        if name in environ or default is not None:
            return ""
        if prefix is None and name == "userHome" and "HOME" in environ:
            return environ["HOME"]
        if prefix is not None or name not in EDITORS:
            return (NotSet(f"environment variable {name} is not set"),)
    kind = re.match(r"(\w+)(?=:|$)|/$", inner)
    if kind is not None and kind[0] == "input":
        return (NotSet("${input:…} is asked for by VS Code only; use ${env:NAME}"),)
    if kind is not None and (kind[0] in EDITORS or kind[0] in {"command", "config"}):
        return (f"${{{kind[0]}}} is not supported outside VS Code and Cursor; write what it is",)
    return ('not a variable; write "$${" if it is meant literally',)
