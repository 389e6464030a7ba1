"""``emceepee disconnect``: what `connect` has done is undone."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs

from ...config.reading.ourselves import is_us
from ..common.options import PORT
from ..common.output import complain, say
from .asking import add_arguments as add_clients
from .asking import agreed, chosen
from .backups import Backup, Backups, digest
from .documents import Document, Unusable
from .entry import NAME
from .places import CLIENTS, Around, ClientFile, places
from .steps import FileStep, carried_out, show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_clients(parser, "whose settings lose our entry")


@attrs.frozen
class Undoing(FileStep):
    backup: Backup | None = attrs.field(default=None, kw_only=True)
    is_whole: bool = attrs.field(default=False, kw_only=True)
    """It becomes what it was, to the byte."""


def run(options: argparse.Namespace) -> int:
    around, backups = Around(os.environ), Backups.here()

    def is_told(client: str, around: Around) -> bool:
        return any(_undoing(place, backups) for place in _files(client, around, backups))

    clients = chosen(options, is_told)
    if clients is None:
        clients = [name for name in CLIENTS if is_told(name, around)]
        say(f"connected: {', '.join(clients)}" if clients else "none of your clients is connected")
        complain("emceepee disconnect: name the clients, or --all of them")
        return 2
    found = [
        undoing
        for name in clients
        for place in _files(name, around, backups)
        if (undoing := _undoing(place, backups)) is not None
    ]
    if not found:
        say("There is nothing to undo.")
        return 0
    show(found)
    failed = any(each.is_bad for each in found)
    to_do = [each for each in found if each.document is not None]
    if not to_do:
        return int(failed)
    if not agreed(options, f"Change {len(to_do)} file{'s' * (len(to_do) != 1)}?"):
        return 1
    failed |= not carried_out(options, to_do, partial(_undo, backups), "disconnected")
    return int(failed)


def _files(client: str, around: Around, backups: Backups) -> Iterator[ClientFile]:
    """Also those that it has no more, since a variable is another one now."""
    known = [place for place in places(client, around) if place.is_for_us]
    yield from known
    for backup in backups:
        if backup.client == client and backup.path not in {str(place.path) for place in known}:
            path = Path(backup.path)
            yield ClientFile(client, path, known[0].key, path)


def _undoing(place: ClientFile, backups: Backups) -> Undoing | None:
    """None if there is nothing of ours in it."""
    try:
        document = Document.read(place.path)
    except Unusable as error:
        return (
            Undoing(place, "left alone", str(error), is_bad=True)
            if _is_kept(place, backups)
            else None
        )
    backup = backups.of(document)
    if document.content is None:
        if backup is not None:
            backups.forget(backup)  # somebody has removed it, and us with it
        return None
    try:
        if backup is not None and digest(document.content) == backup.written:
            backups.content(backup)
            document.check_writable()
            does = "remove the file" if backup.was is None else "restore"
            note = "which was made for us" if backup.was is None else "to what it was, to the byte"
            return Undoing(place, does, note, document, backup=backup, is_whole=True)
        servers = document.at(place.keys)
        entry = servers.get(NAME) if isinstance(servers, dict) else None
        if not isinstance(entry, dict) or not is_us(NAME, entry, {PORT}):
            return None
        document.check_writable()
        document.without_entry(place.keys, NAME)
    except Unusable as error:
        return Undoing(place, "left alone", str(error), is_bad=True)
    note = (
        "only that: the file has changed since"
        if backup is not None
        else "which we have not put there"
    )
    return Undoing(place, "remove our entry", note, document, backup=backup)


def _is_kept(place: ClientFile, backups: Backups) -> bool:
    return any(backup.path == str(place.path) for backup in backups)


def _undo(backups: Backups, undoing: Undoing) -> None:
    document, backup = undoing.document, undoing.backup
    assert document is not None
    if not undoing.is_whole:
        document.write(document.without_entry(undoing.place.keys, NAME))
    else:
        assert backup is not None
        content = backups.content(backup)
        if content is None:
            document.remove()
            for folder in reversed(backup.made):
                with suppress(OSError):  # somebody else has put something there
                    Path(folder).rmdir()
        else:
            document.write(content)
    if backup is not None:
        backups.forget(backup)
