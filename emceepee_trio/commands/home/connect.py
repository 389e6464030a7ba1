"""``emceepee connect``: our entry among the servers of other programs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from functools import partial
from textwrap import indent

import attrs

from ...config.reading.ourselves import is_us
from ..common.options import PORT
from ..common.output import complain, say
from ..common.terminal import show_table
from .asking import add_arguments as add_clients
from .asking import agreed, chosen, listed, shown
from .backups import Backup, Backups, digest
from .documents import Document, Unusable
from .entry import NAME, Entry, command_line, entry_of, is_passing
from .places import CLIENTS, Around, ClientFile, is_installed, to_be_told
from .steps import FileStep, carried_out, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_clients(parser, "whose settings get our entry")


@attrs.frozen
class Change(FileStep):
    entry: Entry | None = attrs.field(default=None, kw_only=True)
    """What is to be written; None if nothing is."""


def run(options: argparse.Namespace) -> int:
    around = Around(os.environ)
    clients = chosen(options, is_installed)
    words = command_line()
    if clients is None:
        if not (rows := _overview(around, words)):
            say(f"none of these is installed here: {', '.join(CLIENTS)}")
            return 0
        show_table(("client", "file", "now"), rows)
        complain("emceepee connect: name the clients, or --all that are installed")
        return 2
    if not clients:
        say(f"none of these is installed here: {', '.join(CLIENTS)}")
        return 0
    backups = Backups.here()
    steps = [_step(place, words, backups) for name in clients for place in to_be_told(name, around)]
    show(steps)
    to_do = [step for step in steps if step.entry is not None]
    failed = any(step.is_bad for step in steps)
    if not to_do:
        say("\nThere is nothing to do.")
        return int(failed)
    for text, clients in _written(to_do).items():
        say(f"\nWhat is written there for {listed(clients)}:\n\n{indent(text.strip(), '  ')}")
    if is_passing(words):
        complain(
            "emceepee connect: that is in a cache, which may be emptied; `uv tool install` or "
            "`pipx install` it first, and connect with that"
        )
    if not agreed(options, f"Write {len(to_do)} file{'s' * (len(to_do) != 1)}?"):
        return 1
    done = "connected; start it anew to have it see that"
    failed |= not carried_out(options, to_do, partial(_write, backups), done)
    say("`emceepee disconnect` undoes it.")
    return int(failed)


def _overview(around: Around, words: Sequence[str]) -> list[tuple[str, str, str]]:
    backups = Backups.here()
    rows = []
    for client in CLIENTS:
        if not is_installed(client, around):
            continue
        for place in to_be_told(client, around):
            step = _step(place, list(words), backups)
            rows.append((client, shown(place.path), step.note or "not connected"))
    return rows


def _written(steps: Sequence[Change]) -> dict[str, list[str]]:
    """Each entry as it stands in a file of its own, and the clients that get it."""
    found: dict[str, list[str]] = {}
    for step in steps:
        assert step.entry is not None
        alone = Document(step.place.path, step.place.path, None, {})
        text = alone.with_entries(step.place.keys, {NAME: step.entry}).decode()
        clients = found.setdefault(text, [])
        if step.place.client not in clients:
            clients.append(step.place.client)
    return found


def _step(place: ClientFile, words: list[str], backups: Backups) -> Change:
    try:
        document = Document.read(place.path)
    except Unusable as error:
        return Change(place, "left alone", str(error), is_bad=True)
    servers = document.at(place.keys) or {}
    if not isinstance(servers, dict):
        return Change(
            place, "left alone", f"{place.key} is no object; mend that first", is_bad=True
        )
    entry = entry_of(place.client, words)
    name, there = _ours(servers)
    if there == entry:
        return Change(place, "nothing", "connected")
    if there is not None:
        backup = backups.of(document)
        is_as_we_left_it = backup is not None and digest(document.content or b"") == backup.written
        if name != NAME or not is_as_we_left_it:
            if not is_us(name, there if isinstance(there, dict) else {}, {PORT}):
                why = f"{NAME!r} is something else there; rename that first"
                return Change(place, "left alone", why, is_bad=True)
            return Change(place, "nothing", f"connected by {name!r}, which somebody else wrote")
    try:
        document.check_writable()
        document.with_entries(place.keys, {NAME: entry})
    except Unusable as error:
        return Change(place, "left alone", str(error), is_bad=True)
    does = "new file" if document.content is None else "add" if there is None else "change"
    return Change(place, does, "", document, entry=entry)


def _ours(servers: dict[str, object]) -> tuple[str, object]:
    """The entry that is about us, or is called so; nothing if there is none."""
    if NAME in servers:
        return NAME, servers[NAME]
    for name, entry in servers.items():
        if isinstance(entry, dict) and is_us(name, entry, {PORT}):
            return name, entry
    return NAME, None


def _write(backups: Backups, step: Change) -> None:
    document, place = step.document, step.place
    assert document is not None
    assert step.entry is not None
    content = document.with_entries(place.keys, {NAME: step.entry})
    old = backups.of(document)
    if old is not None and old.written == digest(document.content or b""):
        # Still what we made of it, so what it was before that is what it shall become again.
        backup, before = attrs.evolve(old, written=digest(content)), backups.content(old)
    else:
        before = document.content
        was = None if before is None else digest(before)
        made = tuple(map(str, document.missing_folders()))
        backup = Backup(place.client, str(document.path), digest(content), was, made)
    backups.keep(backup, before)
    try:
        document.write(content)
    except Unusable:
        if old is None:
            backups.forget(backup)
        else:
            backups.keep(old, backups.content(old))
        raise
