"""Folders that servers are told to keep to, and who may say which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emceepee_client import Emceepee, Open
from fake_backends import Journal, raw
from like import Like


async def told(emceepee: Emceepee, server: str) -> list[str]:
    said = json.loads((await emceepee.execute(server, "roots")).text)
    return [root["uri"] for root in said["roots"]]


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Their URIs: home, a folder in it, one in that, and one beside home; a link out of home."""
    home, beside = tmp_path / "home", tmp_path / "home-of-others"
    for each in (home / "a b" / "inner", beside):
        each.mkdir(parents=True)
    (home / "link").symlink_to(beside)
    found = {"home": home, "a": home / "a b", "inner": home / "a b" / "inner"}
    found |= {"beside": beside, "link": home / "link"}
    return {name: each.as_uri() for name, each in found.items()}


def roots(*uris: str) -> list[dict[str, str]]:
    return [{"uri": uri} for uri in uris]


async def test_servers_are_told_the_configured_ones(
    connect: Open, its_era: tuple[str, ...], folders: dict[str, str]
) -> None:
    inner = {"uri": folders["inner"], "name": "Inner"}
    servers = {"raw": raw(*its_era), "own": raw(*its_era) | {"roots": [inner]}}
    async with connect(servers, roots=["home", folders["beside"]]) as emceepee:
        everybody = roots(folders["home"], folders["beside"])  # paths are of the file's folder
        assert await emceepee.says("get_roots") == {
            "roots": everybody,
            "by_server": {"own": [inner]},
        }
        assert await told(emceepee, "raw") == [folders["home"], folders["beside"]]
        assert await told(emceepee, "own") == [folders["inner"]]


async def test_a_client_may_narrow_them_and_not_widen(
    connect: Open, journal: Journal, its_era: tuple[str, ...], folders: dict[str, str]
) -> None:
    servers = {"raw": raw(*its_era, *journal.flags), "own": raw() | {"roots": ["home/a b"]}}
    async with connect(servers, roots=[folders["home"]]) as emceepee:
        await emceepee.connected("raw", "own")
        said = await emceepee.says("set_roots", roots=roots(folders["inner"]))
        assert said["roots"] == roots(folders["inner"])
        assert await told(emceepee, "raw") == await told(emceepee, "own") == [folders["inner"]]
        if not its_era:
            await journal.wait_for_method("notifications/roots/list_changed")
        # Back to all that is configured is no widening of that.
        assert await emceepee.says("set_roots", roots=roots(folders["home"])) == {
            "roots": roots(folders["home"]),
            "by_server": {"own": roots(folders["a"])},
        }
        home = folders["home"]
        for wider in (
            *(
                "file:///",
                folders["beside"],
                home + "/../home-of-others",
                home + "x",
                "file:///etc",
            ),
            *(home + "/%2e%2e/", home + "/..%2f", home + "\\..\\..", f"file://elsewhere{home[7:]}"),
            *(folders["link"], home + "/a%20b/../../home-of-others", home + "/.%09./"),
        ):
            error = await emceepee.fails("set_roots", roots=roots(home, wider))
            assert error["code"] == "TOOL_ERR_DENIED", wider
            assert error["message"] == Like(".*narrowed only.*policy.roots.*")
            assert await told(emceepee, "raw") == [home]
        await emceepee.says("set_roots", roots=[])
        assert await told(emceepee, "raw") == await told(emceepee, "own") == []


async def test_what_is_told_is_spelled_anew(connect: Open, folders: dict[str, str]) -> None:
    async with connect({"raw": raw()}, roots=[folders["home"]]) as emceepee:
        odd = folders["home"] + "/./a%20b//inner/../?x#y"
        await emceepee.says("set_roots", roots=[{"uri": odd, "name": "A"}])
        assert await emceepee.says("get_roots") == {"roots": [{"uri": folders["a"], "name": "A"}]}


async def test_policy_says_what_a_client_may_set(connect: Open, folders: dict[str, str]) -> None:
    servers = {"raw": raw(), "own": raw() | {"roots": [folders["home"]]}}
    wide = roots("file:///", folders["inner"])
    # Without configured ones any; a server that has some of its own keeps to them.
    async with connect(servers) as emceepee:
        assert await emceepee.says("set_roots", roots=wide) == {
            "roots": wide,
            "by_server": {"own": roots(folders["home"], folders["inner"])},
        }
    async with connect(servers, roots=[], policy={"roots": "allow"}) as emceepee:
        said = await emceepee.says("set_roots", roots=wide)
        assert said == {"roots": wide, "by_server": {"own": wide}}
    narrow: list[dict[str, Any]] = [{"roots": []}, {"policy": {"roots": "narrow"}}]
    for settings in narrow:
        async with connect(servers, **settings) as emceepee:
            error = await emceepee.fails("set_roots", roots=wide)
            assert error["code"] == "TOOL_ERR_DENIED"
            await emceepee.says("set_roots", roots=roots(folders["inner"]))
            assert await told(emceepee, "raw") == []
            assert await told(emceepee, "own") == [folders["inner"]]
    async with connect(servers, policy={"roots": "deny"}) as emceepee:
        error = await emceepee.fails("set_roots", roots=[])
        assert error["code"] == "TOOL_ERR_DENIED"
        assert "policy.roots" in error["message"]
        assert await told(emceepee, "own") == [folders["home"]]


async def test_set_roots_is_marked_as_what_it_is(connect: Open) -> None:
    async with connect() as emceepee:
        tools: list[Any] = (await emceepee.request("tools/list"))["tools"]
        (tool,) = [tool for tool in tools if tool["name"] == "set_roots"]
        assert tool["annotations"]["destructiveHint"] is True
