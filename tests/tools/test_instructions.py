"""What a client is told as it connects."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emceepee_client import Emceepee, Open, open_emceepee
from emceepee_trio.config.bounds import MAX_OUR_INSTRUCTIONS
from fake_backends import raw


@pytest.fixture(params=["handshake", "modern"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return partial(open_emceepee, tmp_path, era=request.param)


async def told(emceepee: Emceepee) -> str:
    said = emceepee.client.instructions
    assert said is not None
    assert len(said.encode()) <= MAX_OUR_INSTRUCTIONS
    if emceepee.era == "modern":
        assert (await emceepee.request("server/discover"))["instructions"] == said
    return said


async def test_the_servers_are_named_with_what_they_are_for(connect: Open) -> None:
    """Before any of them is connected, and in the order of the file."""
    servers: dict[str, Any] = {
        "zoo": raw("--silent") | {"description": "Animals, and\n what they eat."},
        "plain": raw("--silent"),
        "off": raw() | {"disabled": True, "description": "Not now."},
        "late": raw() | {"start": "lazy", "description": "Zeitzonen, Küche"},
    }
    async with connect(servers) as emceepee:
        said = await told(emceepee)
        assert said.endswith(
            "\nServers: zoo (Animals, and what they eat.); plain; late (Zeitzonen, Küche)."
        )
        assert "list_tools" in said


async def test_without_servers_that_is_said(connect: Open) -> None:
    async with connect() as emceepee:
        assert (await told(emceepee)).endswith("No server is configured.")


async def test_names_come_before_descriptions_and_have_an_end(connect: Open) -> None:
    off = {"url": "http://127.0.0.1:9/", "start": "lazy"}
    servers = {f"server-{n}": off | {"description": "é" * 3000} for n in range(20)}
    async with connect(servers) as emceepee:
        said = await told(emceepee)
        assert all(f"server-{n} (éé" in said for n in range(20))


async def test_names_that_have_no_room_are_counted(connect: Open) -> None:
    off = {"url": "http://127.0.0.1:9/", "start": "lazy"}
    servers = {f"a-rather-long-name-{n}": off | {"description": "x"} for n in range(90)}
    async with connect(servers) as emceepee:
        said = await told(emceepee)
        assert "a-rather-long-name-0; a-rather-long-name-1;" in said
        named = said.count("a-rather-long-name-")
        assert said.endswith(f"; and {90 - named} more, see list_servers.")
        await emceepee.says("add_server", name="added", description="New", **raw())
        if emceepee.era == "modern":
            said = (await emceepee.request("server/discover"))["instructions"]
            assert f"; and {91 - named} more" in said
