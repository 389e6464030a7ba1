"""A server that was there from the beginning connects: no news, unless somebody was told that it
is not there yet; who has seen it connecting is woken."""

from __future__ import annotations

from pathlib import Path

from emceepee_client import Open
from fake_backends import raw

CONNECTED = {"type": "event", "server": "late", "eventType": "server_connected"}


async def test_connecting_as_planned_is_no_event(connect_as_either: Open, tmp_path: Path) -> None:
    servers = {"raw": raw(), "twice": raw("--discover", "die"), "late": late(tmp_path)}
    async with connect_as_either(servers) as emceepee:
        for server in ("raw", "twice"):
            assert (await emceepee.execute(server, "echo", {"text": "1"})).text == "1"
        listed = (await emceepee.says("list_servers"))["servers"]
        assert [each["status"] for each in listed] == ["connected", "connected", "connecting"]
        said = await emceepee.says("await_activity", timeout_ms=0)
        assert said["triggers"] == [{"type": "timeout"}]
        # Who has seen one connecting, and waits, is woken; that is all.
        (tmp_path / "go").touch()
        woken = await emceepee.says("await_activity")
        assert (woken["triggers"], woken["events"]) == ([CONNECTED], [])
        assert await emceepee.says("await_activity", timeout_ms=0) == said
        assert emceepee.events == []
        assert (await emceepee.status("late"))["recent_events"] == []
        # From then on everything is told.
        await emceepee.says("reconnect_server", name="late")
        await emceepee.event("server_reconnected", name="late")
        assert [event["type"] for event in emceepee.events] == [
            *("process_stopped", "server_disconnected", "process_started", "server_reconnected")
        ]


async def test_who_begins_to_wait_too_late_is_woken_once(connect: Open, tmp_path: Path) -> None:
    async with connect({"late": late(tmp_path)}) as emceepee:
        (listed,) = (await emceepee.says("list_servers"))["servers"]
        assert listed["status"] == "connecting"
        (tmp_path / "go").touch()
        await emceepee.says("list_tools", server="late")  # waits for it
        assert (await emceepee.says("await_activity"))["triggers"] == [CONNECTED]
        assert (await emceepee.says("await_activity", timeout_ms=0))["triggers"] != [CONNECTED]


async def test_who_has_seen_it_connected_is_not_woken(connect: Open, tmp_path: Path) -> None:
    async with connect({"late": late(tmp_path)}) as emceepee:
        await emceepee.status("late")
        (tmp_path / "go").touch()
        await emceepee.execute("late", "echo")
        said = await emceepee.says("await_activity", timeout_ms=0)
        assert said["triggers"] == [{"type": "timeout"}]


async def test_one_that_was_said_to_be_missing_is_told(connect: Open, tmp_path: Path) -> None:
    async with connect({"late": late(tmp_path)}, limits={"list_patience_ms": 10}) as emceepee:
        (error,) = (await emceepee.says("list_tools"))["errors"]
        assert error["server"] == "late"
        (tmp_path / "go").touch()
        connected = await emceepee.event("server_connected")
        assert connected["data"]["name"] == "late"
        # Its program may have started before it was said to be missing, or after that.
        kinds = [event["type"] for event in emceepee.events if event["type"] != "process_started"]
        assert kinds == ["server_connected"]


def late(folder: Path) -> dict[str, object]:
    """It connects when the test says so."""
    return raw("--start-when", folder / "go") | {"connect_timeout_ms": 60_000}
