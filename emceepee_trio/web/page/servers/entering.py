"""The entry of a server in a form: what stands there, and what somebody has made of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from quart import request

from ....config import ConfigError, server_from_arguments
from ....config.entries import Entry, edited, shown
from ....config.reading.dialects import ALIASES
from ....config.server import Server
from ....errors import InvalidArguments
from ....model.json.lenient import lenient
from ....model.json.problems import listed
from ....model.wire import loads
from ..common.requests import json_body

OF_URLS, OF_PROGRAMS = ("url", "headers"), ("command", "args", "env")
BESIDE = ("name", "disabled", *OF_URLS, *OF_PROGRAMS)
"""What has fields of its own, or buttons; the rest is one field of JSON."""

OF_OPERATORS = ("inherit_env", "roots")
"""How far a server may go, which clients have no say in, whatever they may have started."""


def given_of(server: Server) -> dict[str, str]:
    """What the fields have in them, without secrets."""
    entry = shown(server)
    if server.url is not None:
        where = entry["url"]
        more = [f"{name}: {value}" for name, value in entry.get("headers", {}).items()]
    else:
        where = " ".join(map(_quoted, [entry["command"], *entry["args"]]))
        more = [f"{name}={value}" for name, value in entry.get("env", {}).items()]
    settings = {key: value for key, value in entry.items() if key not in BESIDE}
    return {
        "name": server.name,
        "where": where,
        "more": "\n".join(more),
        "settings": json.dumps(settings, indent=2, ensure_ascii=False) if settings else "",
    }


def _quoted(word: str) -> str:
    """Where it has to be: what stands for a secret or a variable need not be."""
    try:
        return word if shlex.split(word) == [word] else shlex.quote(word)
    except ValueError:
        return shlex.quote(word)


async def sent() -> Any:
    """The body of a request, as :func:`said` takes it.

    Raises:
        InvalidArguments: it cannot be read.
    """
    return await json_body() if request.is_json else await request.form


def said(body: Any, before: Server | None = None) -> Entry:
    """What a request says of a server, as a configuration has it. Synchronous: *before* is what is
    there now.

    Raises:
        InvalidArguments: it says something else.
    """
    if request.is_json:
        if not isinstance(body, dict):
            raise InvalidArguments("expected an object")
        given, strangers = lenient(body, Server, aliases=ALIASES)
        if strangers:
            raise InvalidArguments("; ".join(listed(strangers)))
        assert isinstance(given, dict)
        return {key: given.get(key) for key in map(_ours, body)}
    form: Mapping[str, str] = body
    entry = _entry(form)
    if before is not None:
        # Who has emptied a field does not want what was there.
        kept = {key for key in shown(before) if key not in BESIDE}
        entry = dict.fromkeys((*kept, *OF_URLS, *OF_PROGRAMS)) | entry
    name = form.get("name", "" if before is None else before.name)
    return {"name": name.strip()} | entry


def _ours(key: str) -> str:
    return ALIASES.get(key, key)


def _entry(form: Mapping[str, str]) -> Entry:
    where, more = form.get("where", "").strip(), form.get("more", "")
    entry: dict[str, Any]
    if where.startswith(("http://", "https://")):
        entry = {"url": where, "headers": _pairs(more, ":") or None}
    else:
        try:
            command, *args = shlex.split(where) or [""]
        except ValueError as error:
            raise InvalidArguments(f"the command cannot be read: {error}") from None
        entry = {"command": command, "args": args, "env": _pairs(more, "=") or None}
    return {key: value for key, value in entry.items() if value is not None} | _settings(form)


def _pairs(text: str, sign: str) -> dict[str, str]:
    found = {}
    for line in text.splitlines():
        name, given, value = line.partition(sign)
        if line.strip() and not given:
            raise InvalidArguments(f"expected NAME{sign}VALUE in each line, got {line.strip()!r}")
        if given:
            found[name.strip()] = value.strip()
    return found


def _settings(form: Mapping[str, str]) -> Entry:
    text = form.get("settings", "").strip()
    if not text:
        return {}
    try:
        found = loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArguments(f"other settings are no JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidArguments("other settings are a JSON object")
    if taken := sorted({_ours(key) for key in found} & set(BESIDE)):
        raise InvalidArguments(f"not one of the other settings: {', '.join(taken)}")
    return found


def server_of(entry: Mapping[str, Any], before: Server | None = None) -> tuple[Server, Entry]:
    """A server, which is *before* but for what the entry says, and all that is said of it.

    Raises:
        InvalidArguments: it is none.
    """
    try:
        made = dict(entry) if before is None else edited(before, entry)
        given, strangers = lenient(made, Server, aliases=ALIASES)
        if strangers:
            raise ConfigError(strangers)
        assert isinstance(given, dict)
        server = server_from_arguments(given)
    except ConfigError as error:
        raise InvalidArguments("; ".join(listed(error.problems))) from None
    plain = before or Server(server.name)
    if taken := [key for key in OF_OPERATORS if getattr(server, key) != getattr(plain, key)]:
        raise InvalidArguments(f"{' and '.join(taken)} can be said in the configuration only")
    if before is not None and server.name != before.name:
        raise InvalidArguments("a server keeps its name; remove it and add another one")
    return server, given
