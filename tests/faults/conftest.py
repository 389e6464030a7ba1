"""A client of a real daemon; whoever leaves it finds nothing told twice, and no process left."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import GUARD, Emceepee, Json, Open, is_running, open_emceepee
from fake_backends import Journal, until
from telling import drain


@asynccontextmanager
async def _open(
    folder: Path, servers: Mapping[str, Json] | None = None, **settings: Any
) -> AsyncGenerator[Emceepee]:
    async with open_emceepee(folder, servers, **settings) as emceepee:
        yield emceepee
        await drain(emceepee)
        # What starts as planned is told by nothing else.
        here = [each["name"] for each in (await emceepee.says("list_servers"))["servers"]]
        processes = [(await emceepee.status(name)).get("process") for name in here]
    ids = [event["id"] for event in emceepee.events]
    assert len(ids) == len(set(ids))
    started = [e["data"]["pid"] for e in emceepee.events if e["type"] == "process_started"]
    started += [process["pid"] for process in processes if process is not None]
    with trio.fail_after(GUARD):
        await until(lambda: not any(map(is_running, started)))


@pytest.fixture
def connect(tmp_path: Path) -> Open:
    return partial(_open, tmp_path)


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """What a server has received."""
    return Journal(tmp_path / "journal.jsonl")
