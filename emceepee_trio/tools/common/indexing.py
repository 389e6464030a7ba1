"""The index of a session, brought up to what its servers have said."""

from __future__ import annotations

from collections.abc import Iterable

from ...backend.connections.turns import Turns
from ...model.search.index import Kind
from ...session.session import Session
from .asking import Labelled


async def bring_up(session: Session, turns: Turns, kind: Kind, lists: Iterable[Labelled]) -> None:
    """That is what these servers have of that *kind*; who calls it holds the lock of the index."""
    await turns.through(session.found.keep_only(session.backends))
    for each in lists:
        if each.server in session.backends:
            await turns.through(session.found.update(each.server, kind, each.of_server))
