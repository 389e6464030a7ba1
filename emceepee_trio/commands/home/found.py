"""The servers that clients have configured, in our words, as our own configuration would have them.

A variable stays the variable that it is there, so that what it stands for is in no second file.
What only their program can know (a folder of a workspace, an input that it asks for) is said, and
where we could do nothing with the server then, it is left out.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from ...config import ConfigError, Lacking, Server, parse
from ...config.reading.dialects import ALIASES, translate
from ...config.reading.ourselves import is_us
from ...model.text.redact import HIDDEN, redact_command, redact_text
from ..common.options import PORT
from .documents import Document
from .places import ClientFile

_SHELLS = re.compile(r"(?<![$\\\w])\$([A-Za-z_]\w*)")
"""A variable without braces, which Gemini CLI fills in and we do not."""


@attrs.frozen
class TheirServer:
    """A server of a client."""

    client: str
    origin: str
    """The client, and which part of its settings, for people."""
    name: str
    values: Mapping[str, Any]
    """Its entry, in our words."""
    server: Server | None
    """As we would read it; None if it is left out."""
    note: str = ""
    """Why it is left out, or what is lost."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Names of values in it that are secret, and stand there as they are."""
        return tuple(_secrets(self.values))


def servers_of(place: ClientFile, document: Document) -> Iterator[TheirServer]:
    """All that are written there, those of projects too."""
    folder = document.target.parent
    servers = document.at(place.keys)
    if servers is None:
        servers = document.data.get(place.key)  # with its dots in one key
    yield from _found(place, place.client, servers, folder)
    projects = document.data.get("projects") if place.client == "claude-code" else None
    if isinstance(projects, dict):
        for project, said in projects.items():
            servers = said.get("mcpServers") if isinstance(said, dict) else None
            yield from _found(place, f"{place.client} in {project}", servers, Path(project))


def _found(place: ClientFile, origin: str, servers: object, folder: Path) -> Iterator[TheirServer]:
    if not isinstance(servers, dict):
        return
    for name, written in servers.items():
        if isinstance(written, dict):
            yield _judged(place, origin, name, written, folder)
        else:
            yield TheirServer(place.client, origin, name, {}, None, "its entry is no object")


def _judged(
    place: ClientFile, origin: str, name: str, written: dict[str, Any], folder: Path
) -> TheirServer:
    entry = translate(written, name, place.key)
    if entry is None:
        return TheirServer(
            place.client, origin, name, {}, None, "it says neither a command nor a url"
        )
    values = {ALIASES.get(key, key): value for key, value in entry.values.items()}
    values.pop("name", None)
    if is_us(name, values, {PORT}):
        return TheirServer(place.client, origin, name, {}, None, "it is emceepee itself")
    if place.client == "gemini":
        values = _in_strings(values, lambda text: _SHELLS.sub(r"${\1}", text))
    values = _absolute(_own_variables(_with_texts(values)), folder)
    better = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:64]
    try:
        loaded = parse({"mcpServers": {better: values}}, folder=folder, environ=os.environ)
    except ConfigError as error:
        why = "; ".join(str(each).removeprefix(f"mcpServers.{better}.") for each in error.problems)
        return TheirServer(place.client, origin, name, values, None, why)
    (server,) = loaded.config.servers or (None,)
    lost = [str(problem) for problem in entry.problems] + [
        warning.removeprefix(f"{name}.")
        for warning in entry.warnings
        if "ignored" in warning and "; " in warning
    ]
    if isinstance(server, Lacking):
        lost.insert(0, f"disabled until then: {server.lacks}")
    return TheirServer(place.client, origin, better, values, server, "; ".join(lost))


def _in_strings(value: Any, change: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _in_strings(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_in_strings(inner, change) for inner in value]
    return change(value) if isinstance(value, str) else value


def _with_texts(values: dict[str, Any]) -> dict[str, Any]:
    """With variables that are numbers or truths as the texts that others make of them."""
    env = values.get("env")
    if not isinstance(env, Mapping):
        return values
    plain = (bool, int, float)
    texts = {k: json.dumps(v) if isinstance(v, plain) else v for k, v in env.items()}
    return {**values, "env": texts}


def _own_variables(values: dict[str, Any]) -> dict[str, Any]:
    """With what the program itself fills in, from its own ``env``, left to it."""
    env = values.get("env")
    if not isinstance(env, Mapping) or not env:
        return values
    names = "|".join(map(re.escape, map(str, env)))
    theirs = re.compile(rf"(?<!\$)\$\{{({names})\}}")
    args = _in_strings(values.get("args"), lambda text: theirs.sub(r"$${\1}", text))
    return values if args is None else {**values, "args": args}


def _absolute(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What starts at the folder of their file starts there also from ours."""
    moved = dict(values)
    for key in ("cwd", "command"):
        match values.get(key):
            case str(text) if ("/" in text or key == "cwd") and text[:1] not in ("/", "~", "$"):
                moved[key] = str(folder / text)
    return moved


def _secrets(values: Mapping[str, Any]) -> Iterator[str]:
    for part in ("env", "headers"):
        inner = values.get(part)
        for name, text in inner.items() if isinstance(inner, Mapping) else ():
            is_literal = isinstance(text, str) and "${" not in text
            if is_literal and HIDDEN in redact_text(f"{name}={text}"):
                yield name
    args = values.get("args")
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    if HIDDEN in redact_command([re.sub(r"\$?\$\{[^}]*\}", "", word) for word in words]):
        yield "an argument"
    url = values.get("url")
    if isinstance(url, str) and "${" not in url and HIDDEN in redact_text(url):
        yield "the url"
