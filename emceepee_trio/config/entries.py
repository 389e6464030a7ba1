"""The entry of a server as people see and edit it. Pure.

Secrets are not in what is shown, as `seen` has it. What comes back as it was shown is what it was.
But a header that was kept for one host is not for another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs

from ..model.json.problems import Expanded, Problem, join
from ..model.text.redact import HIDDEN, LONGEST
from .reading.documents import ConfigError
from .seen import seen, seen_url, seen_words
from .server import Server
from .settings import Defaults

Entry = dict[str, Any]

_OF_PROGRAMS = ("command", "args")


def entry_of(server: Server) -> Entry:
    """What is to be said of it; what is so in any case is left out."""
    said: Entry = _said(server)
    return said


def _said(value: Any) -> Any:
    if attrs.has(type(value)):
        made = {}
        # What a server lacks is nothing that can be said of it.
        for field in attrs.fields(Server if isinstance(value, Server) else type(value)):
            default, given = field.default, getattr(value, field.name)
            if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # it is a class
                default = default.factory()
            if given != default:
                made[field.name] = _said(given)
        return made
    if isinstance(value, Mapping):
        return {key: _said(inner) for key, inner in value.items()}
    return list(map(_said, value)) if isinstance(value, list | tuple) else value


def shown(server: Server) -> Entry:
    """The same without secrets, and without its name."""
    entry = entry_of(server)
    del entry["name"]
    if server.url is not None:
        entry["url"] = _whole(server.url, seen_url(server.url, of_somebody=f"{HIDDEN}@"))
    if server.command is not None:
        entry |= _command(_words(server))
    for key in ("env", "headers"):
        if key in entry:
            entry[key] = {name: seen(value, HIDDEN, HIDDEN) for name, value in entry[key].items()}
    return entry


def _words(server: Server) -> list[str]:
    words = (server.command or "", *server.args)
    return list(map(_whole, words, seen_words(words)))


def _whole(value: str, said: str) -> str:
    """What is shown in part only could not come back."""
    return said if isinstance(value, Expanded) or len(value) <= LONGEST else HIDDEN


def _command(words: Sequence[str]) -> Entry:
    return {"command": words[0], "args": list(words[1:])}


def edited(server: Server, said: Mapping[str, Any]) -> Entry:
    """The entry of *server* with all that is *said* anew; null takes something out of it.

    Raises:
        ConfigError: it is not known what is hidden there.
    """
    known, seen = entry_of(server), shown(server)
    # What holds for all servers is as it was for this one, too, unless it is said.
    made = {a.name: getattr(server, a.name) for a in attrs.fields(Defaults)} | known | dict(said)
    if said.get("url") == seen.get("url"):
        made["url"] = known.get("url")
    if not _is_same_host(server.url, made.get("url")):
        known["headers"] = {}
        if "headers" not in said:
            made["headers"] = seen.get("headers")
    for key in ("env", "headers"):
        if isinstance(values := said.get(key), Mapping):
            before, old = seen.get(key, {}), known.get(key, {})
            made[key] = {
                name: old.get(name, value) if value == before.get(name) else value
                for name, value in values.items()
            }
    if any(key in said for key in _OF_PROGRAMS) and server.command is not None:
        made |= _with_their_words(server, made)
    if problems := list(_unknown(known, seen, made)):
        raise ConfigError(problems)
    return {key: value for key, value in made.items() if value is not None}


def _is_same_host(before: str | None, after: object) -> bool:
    if before is None or not isinstance(after, str):
        return before is after
    try:
        return urlsplit(before)[:2] == urlsplit(after)[:2]
    except ValueError:
        return False


def _with_their_words(server: Server, made: Entry) -> Entry:
    """A word is known by the one before it, which may be the name of an option."""
    args = made.get("args") or []
    if not isinstance(made.get("command"), str) or not isinstance(args, list | tuple):
        return {}
    real, seen = [server.command or "", *server.args], _words(server)
    hidden: dict[tuple[str, str], list[str]] = defaultdict(list)
    for i, (word, shown) in enumerate(zip(real, seen, strict=True)):
        if word != shown or isinstance(word, Expanded):
            hidden[seen[i - 1] if i else "", shown].append(word)
    words = [made["command"], *args]
    asked: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, word in enumerate(words):
        if all(isinstance(each, str) for each in words[max(i - 1, 0) : i + 1]):
            asked[words[i - 1] if i else "", word].append(i)
    for pair, places in asked.items():
        found = hidden.get(pair, [])
        if len(found) == len(places):
            for i, word in zip(places, found, strict=True):
                words[i] = word
    return _command(words)


def _unknown(known: Entry, seen: Entry, made: Entry) -> Iterator[Problem]:
    """Where something stands for what it was, and is not."""
    was, stands = _texts(known), _texts(seen)
    for path, value in _texts(made).items():
        stood = value in stands.values() and value not in was.values()
        if stood or (HIDDEN in value and value not in was.values()):
            what = HIDDEN if HIDDEN in value else "a variable"
            yield Problem(path, f"{what} stands for what is not shown; write what it shall be")


_SECRET = ("url", "command", "args", "env", "headers")
"""What may have secrets in it."""


def _texts(entry: Entry) -> dict[str, str]:
    return dict(_paths({key: entry.get(key) for key in _SECRET}, ""))


def _paths(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(inner, join(path, str(key)))
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _paths(inner, join(path, i))
