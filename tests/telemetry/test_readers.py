from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from emceepee_trio.config import Config
from emceepee_trio.journal import Reader
from emceepee_trio.model.facts import SessionEnded, SessionOpened
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.telemetry import readers


@asynccontextmanager
async def open_store(config: Config, state: Path | None) -> AsyncGenerator[Reader | None]:
    """Keeps who was here, as one would that is a line of the list."""
    if state is None:
        yield None
        return
    with (state / "visits").open("w") as file:

        def keep(fact: SessionOpened | SessionEnded) -> None:
            print(type(fact).__name__, fact.session, file=file)

        yield Reader("visits", keep, (SessionOpened, SessionEnded))
        print("closed", file=file)


async def test_a_store_has_every_fact_of_every_session_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "READERS", (*readers.READERS, open_store))
    async with open_sessions(Config(), tmp_path) as manager:
        assert [reader.name for reader in manager.journal.readers] == ["log", "visits"]
        one = await manager.ensure("one", "ada")
        manager.end(one, "DELETE")
        await manager.ensure("two", "bob")
    assert (tmp_path / "visits").read_text().splitlines() == [
        *("SessionOpened one", "SessionEnded one"),
        *("SessionOpened two", "SessionEnded two"),
        "closed",
    ]


async def test_who_does_not_want_to_read_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "READERS", (*readers.READERS, open_store))
    async with open_sessions(Config()) as manager:
        assert [reader.name for reader in manager.journal.readers] == ["log"]
