"""``emceepee import``: the servers of other programs become ours."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from ...config import Config, ConfigError, Server, default_path, load, parse
from ..common.output import complain, say
from ..common.terminal import show_table
from .asking import add_arguments as add_clients
from .asking import agreed, chosen, listed, shown
from .documents import Document, Unusable
from .found import TheirServer, servers_of
from .places import CLIENTS, Around, is_installed, places

NEW, SAME, CONFLICT, LEFT_OUT = "new", "same", "conflict", "left out"
KEY = "mcpServers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_clients(parser, "whose servers are taken over")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="where they go; default: as for serve"
    )


@attrs.frozen
class Candidate:
    """A server that was found, and what becomes of it."""

    found: TheirServer
    state: str
    note: str = ""


def run(options: argparse.Namespace) -> int:
    around = Around(os.environ)
    clients = chosen(options, is_installed)
    path = options.config or default_path()
    try:
        ours = Document.read(path)
        known = _known(ours)
    except (Unusable, ConfigError) as error:
        for line in str(error).split("\n"):
            complain(f"emceepee import: {line}")
        complain(f"emceepee import: see `emceepee check {shown(path)}`; nothing was written")
        return 1
    found, broken = _all_of(
        clients or [each for each in CLIENTS if is_installed(each, around)], around
    )
    candidates = judge(found, known)
    for why in broken:
        complain(f"emceepee import: {why}")
    if not candidates:
        where = listed(clients or list(CLIENTS))
        say(f"no servers are configured in {where}")
        return int(bool(broken))
    show_table(("server", "from", "what", "target", "note"), map(_row, candidates))
    _tell_counts(candidates, path)
    if clients is None:
        complain("emceepee import: name the clients, or --all that are installed")
        return 2
    new = [each.found for each in candidates if each.state == NEW]
    if not new:
        say("\nThere is nothing to import.")
        return int(bool(broken))
    secret = {each.name: each.secrets for each in new if each.secrets}
    if secret:
        named = "; ".join(f"{name} ({listed(words)})" for name, words in secret.items())
        say(f"\nSecrets that stand there as they are will stand in our file, too: {named}.")
        say(
            "It will be readable for you alone. Better: put them into variables, and write ${NAME}."
        )
    many = f"{len(new)} server{'s' * (len(new) != 1)}"
    if not agreed(options, f"Write {many} to {shown(path)}?"):
        return 1
    try:
        kept = write(ours, new, private=bool(secret))
    except (Unusable, ConfigError) as error:
        complain(f"emceepee import: {error}; nothing was written")
        return 1
    say(f"{many} written to {shown(path)}" + (f"; it was {shown(kept)}" if kept else ""))
    say("`emceepee check --connect` tries them, `emceepee reload` has a daemon that runs read")
    say("them. Your clients start theirs as well until you take them out there; `emceepee connect`")
    say("adds ours.")
    return int(bool(broken))


def _known(ours: Document) -> Mapping[str, Server]:
    if ours.content is None or not ours.content.strip():
        return {}
    config = load(ours.path).config if ours.data else Config()
    return {server.name: server for server in config.servers}


def _all_of(clients: Iterable[str], around: Around) -> tuple[list[TheirServer], list[Unusable]]:
    found: list[TheirServer] = []
    broken = []
    for client in clients:
        for place in places(client, around):
            if not place.is_there:
                continue
            try:
                found += servers_of(place, Document.read(place.path))
            except Unusable as error:
                broken.append(error)
    return found, broken


def judge(found: Iterable[TheirServer], known: Mapping[str, Server]) -> list[Candidate]:
    """Who comes first has the name; nobody else gets it, unless he is the same."""
    taken = dict(known)
    whose = dict.fromkeys(known, "ours")
    candidates = []
    for each in found:
        if each.server is None:
            candidates.append(Candidate(each, LEFT_OUT, each.note))
        elif each.name not in taken:
            taken[each.name], whose[each.name] = each.server, f"that of {each.origin}"
            candidates.append(Candidate(each, NEW, each.note))
        elif _is_same(each.server, taken[each.name]):
            candidates.append(Candidate(each, SAME))
        else:
            note = f"another one than {whose[each.name]}; rename it there, or edit our file"
            candidates.append(Candidate(each, CONFLICT, note))
    return candidates


def _is_same(one: Server, other: Server) -> bool:
    """Whether they are the same server; how patient we are with it may differ."""

    def known_by(server: Server) -> tuple[Any, ...]:
        program = (server.command, server.args, server.cwd, tuple(sorted(server.env.items())))
        headers = tuple(sorted((name.lower(), text) for name, text in server.headers.items()))
        return (*program, server.url, headers)

    return known_by(one) == known_by(other)


def _row(candidate: Candidate) -> tuple[str, str, str, str, str]:
    found = candidate.found
    target = found.server.target if found.server is not None else ""
    return found.name, found.origin, candidate.state, target, candidate.note


def _tell_counts(candidates: list[Candidate], path: Path) -> None:
    counts = dict.fromkeys((NEW, SAME, CONFLICT, LEFT_OUT), 0)
    for each in candidates:
        counts[each.state] += 1
    said = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    say(f"\n{said}; ours is {shown(path)}")


def write(ours: Document, new: Iterable[TheirServer], *, private: bool) -> Path | None:
    """Add them to our configuration; where it is kept as it was before, if there was one.

    Raises:
        Unusable: it cannot be written.
        ConfigError: it would not be one that we can use.
    """
    entries = {each.name: dict(each.values) for each in new}
    content = ours.with_entries((KEY,), entries)
    data = {**ours.data, KEY: {**(ours.data.get(KEY) or {}), **entries}}
    parse(data, folder=ours.path.absolute().parent, environ=os.environ)
    kept = None
    if ours.content is not None:
        stamp = time.strftime("%Y%m%dT%H%M%S")
        kept = ours.target.with_name(f"{ours.target.name}.{stamp}")
        Document(kept, kept, kept.read_bytes() if kept.exists() else None, {}).write(ours.content)
    ours.write(content, private=private)
    return kept
