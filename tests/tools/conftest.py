"""Clients and backends, of either era where it matters."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from emceepee_client import Era, Open, open_emceepee
from fake_backends import Journal


@pytest.fixture
def connect(tmp_path: Path) -> Open:
    """A client, of the handshake era."""
    return partial(open_emceepee, tmp_path)


@pytest.fixture(params=["handshake", "modern"])
def connect_as_either(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """The same, of each era a client can be of."""
    era: Era = request.param
    return partial(open_emceepee, tmp_path, era=era)


@pytest.fixture(params=["handshake", "modern"])
def its_era(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Flags that make a raw server one of this era."""
    return ("--discover", "modern") if request.param == "modern" else ()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """What a raw server has received."""
    return Journal(tmp_path / "journal.jsonl")
