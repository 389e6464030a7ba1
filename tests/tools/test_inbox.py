"""Notifications and logs of servers; log levels and roots, which they are told."""

from __future__ import annotations

import json
from typing import Any

from emceepee_client import Emceepee, Open
from fake_backends import Journal, demo, raw
from like import TIMESTAMP, Like


async def test_notifications_are_given_out_once_oldest_first(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era), "other": raw()}) as emceepee:
        await emceepee.connected("raw", "other")
        await emceepee.execute("raw", "notify_many", {"n": 2, "k": 1})
        said = await emceepee.says("get_notifications", server="raw")
        assert list(said) == ["notifications"]
        vendor = [
            {
                "server": "raw",
                "method": "notifications/vendor/thing",
                "params": {"n": n, "x-vendor": {"deep": [n]}},
                "timestamp": TIMESTAMP,
            }
            for n in range(2)
        ]
        assert said["notifications"][:2] == vendor
        changed = [entry["method"] for entry in said["notifications"][2:]]
        kinds = ["tools", "resources", "prompts"]
        assert changed == [f"notifications/{kind}/list_changed" for kind in kinds]
        assert await emceepee.says("get_notifications") == {"notifications": []}
        if not its_era:
            assert "params" not in said["notifications"][2]


async def test_notifications_can_be_picked_and_limited(connect: Open) -> None:
    async with connect({"raw": raw(), "other": raw()}) as emceepee:
        await emceepee.execute("other", "notify_many", {"n": 1, "k": 0})
        await emceepee.execute("raw", "notify_many", {"n": 5, "k": 0})

        async def heard(**wanted: Any) -> list[tuple[str, int]]:
            said = (await emceepee.says("get_notifications", **wanted))["notifications"]
            return [(entry["server"], entry["params"]["n"]) for entry in said]

        assert await heard(server="nobody") == []
        assert await heard(server="raw", limit=2) == [("raw", 0), ("raw", 1)]
        assert await heard(limit=2) == [("other", 0), ("raw", 2)]
        assert await heard() == [("raw", 3), ("raw", 4)]
        for limit in (0, "one", True):
            error = await emceepee.fails("get_notifications", limit=limit)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"


async def test_only_the_newest_notifications_are_kept(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"notifications": 3}) as emceepee:
        await emceepee.execute("raw", "notify_many", {"n": 5, "k": 0})
        said = (await emceepee.says("get_notifications"))["notifications"]
        assert [entry["params"]["n"] for entry in said] == [2, 3, 4]


async def logged(emceepee: Emceepee, **wanted: Any) -> list[Any]:
    said = await emceepee.says("get_logs", **wanted)
    assert list(said) == ["logs", "dropped"]
    return [entry["data"] for entry in said["logs"]]


async def test_logs_come_from_three_sources(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw()}) as emceepee:
        for tool in "log_many", "stderr", "garbage":
            await emceepee.execute("raw", tool, {"n": 1, "level": "warning", "line": "oops"})
        said = await emceepee.says("get_logs", clear=False)
        assert said["dropped"] == 0
        by_source: dict[str, list[Any]] = {}
        for entry in said["logs"]:
            by_source.setdefault(entry["source"], []).append(entry)
        assert by_source["protocol"] == [
            {
                "server": "raw",
                "source": "protocol",
                "level": "warning",
                "logger": "raw",
                "data": {"n": 0},
                "timestamp": TIMESTAMP,
            }
        ]
        assert by_source["stderr"] == [
            {
                "server": "raw",
                "source": "stderr",
                "level": "info",
                "data": "oops 0",
                "timestamp": TIMESTAMP,
            }
        ]
        assert by_source["stdout"][0] == {
            "server": "raw",
            "source": "stdout",
            "level": "info",
            "data": "this is not JSON",
            "timestamp": TIMESTAMP,
        }
        keep = {"clear": False}
        assert await logged(emceepee, sources=["protocol", "stderr"], **keep) == [
            {"n": 0},
            "oops 0",
        ]
        assert await logged(emceepee, exclude_sources=["stdout", "stderr"], **keep) == [{"n": 0}]
        assert await logged(emceepee, level="warning", **keep) == [{"n": 0}]
        assert await logged(emceepee, level="error", **keep) == []
        assert await logged(emceepee, server="nobody", **keep) == []


async def test_logs_are_cleared_as_they_are_read_unless_told_otherwise(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.execute("raw", "log_many", {"n": 3, "level": "info"})
        await emceepee.execute("raw", "log_many", {"n": 2, "level": "error"})
        for _ in range(2):
            assert await logged(emceepee, clear=False) == [{"n": n} for n in (0, 1, 2, 0, 1)]
        assert await logged(emceepee, level="error") == [{"n": 0}, {"n": 1}]
        # The newest that fit; what matched is gone, whether it fitted or not.
        said = await emceepee.says("get_logs", limit=1)
        assert [entry["data"] for entry in said["logs"]] == [{"n": 2}]
        assert said["dropped"] == 2
        assert await emceepee.says("get_logs") == {"logs": [], "dropped": 0}


async def test_only_so_many_logs_are_kept_and_the_rest_counted(connect: Open) -> None:
    settings = {"limits": {"logs": 4, "log_bytes": 256}}
    async with connect({"raw": raw()}, **settings) as emceepee:
        await emceepee.execute("raw", "log_many", {"n": 10})
        said = await emceepee.says("get_logs")
        assert [entry["data"]["n"] for entry in said["logs"]] == [6, 7, 8, 9]
        assert said["dropped"] == 6
        await emceepee.execute("raw", "stderr", {"n": 1, "line": "ü" * 500})
        (line,) = await logged(emceepee)
        assert line == "ü" * 128 + "…"


async def test_arguments_of_get_logs_are_checked(connect: Open) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"limit": 0}, "limit: out of range, expected 1 to 500, got 0"),
        ({"limit": 501}, "limit: out of range, expected 1 to 500, got 501"),
        ({"level": "loud"}, 'level: expected one of "debug", .*'),
        ({"sources": ["stdin"]}, r"sources\[0\]: expected one of .*"),
        ({"sources": "stderr"}, "sources: expected a list, .*"),
        ({"clear": "yes"}, "clear: expected true or false, .*"),
    ]
    async with connect() as emceepee:
        for arguments, problem in bad:
            error = await emceepee.fails("get_logs", **arguments)
            assert error["details"] == {"problems": [Like(problem)]}


async def test_a_log_level_is_told_to_the_server(
    connect: Open, journal: Journal, its_era: tuple[str, ...]
) -> None:
    async with connect({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        said = await emceepee.says("set_log_level", server="raw", level="error")
        assert said == {"server": "raw", "level": "error"}
        await emceepee.execute("raw", "echo")
        if its_era:  # which says it with every request
            meta = journal.of("tools/call")[-1]["params"]["_meta"]
            assert meta["io.modelcontextprotocol/logLevel"] == "error"
        else:
            (told,) = journal.of("logging/setLevel")
            assert told["params"] == {"level": "error"}
        error = await emceepee.fails("set_log_level", server="raw", level="loud")
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        # It outlives the connection.
        await emceepee.says("reconnect_server", name="raw")
        await emceepee.execute("raw", "echo")
        if its_era:
            meta = journal.of("tools/call")[-1]["params"]["_meta"]
            assert meta["io.modelcontextprotocol/logLevel"] == "error"
        else:
            await journal.wait_for_method("logging/setLevel", 2)


async def test_a_server_logs_no_more_than_it_is_asked_for(connect: Open) -> None:
    async with connect({"demo": demo()}) as emceepee:
        log = {"message": "hello", "level": "info"}
        await emceepee.execute("demo", "log", log)
        (entry,) = (await emceepee.says("get_logs", sources=["protocol"]))["logs"]
        assert (entry["level"], entry["logger"]) == ("info", "demo")
        assert "hello" in json.dumps(entry["data"])
        await emceepee.says("set_log_level", server="demo", level="error")
        await emceepee.execute("demo", "log", log)
        await emceepee.execute("demo", "log", log | {"level": "critical"})
        (entry,) = (await emceepee.says("get_logs", sources=["protocol"]))["logs"]
        assert entry["level"] == "critical"


async def test_roots_are_told_to_servers(
    connect: Open, journal: Journal, its_era: tuple[str, ...]
) -> None:
    roots = [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]
    async with connect({"raw": raw(*its_era, *journal.flags)}) as emceepee:
        assert await emceepee.says("get_roots") == {"roots": []}
        assert json.loads((await emceepee.execute("raw", "roots")).text) == {"roots": []}
        assert await emceepee.says("set_roots", roots=roots) == {"roots": roots}
        assert await emceepee.says("get_roots") == {"roots": roots}
        assert json.loads((await emceepee.execute("raw", "roots")).text) == {"roots": roots}
        if its_era:
            assert journal.of("notifications/roots/list_changed") == []
        else:
            await journal.wait_for_method("notifications/roots/list_changed")
        assert await emceepee.says("set_roots", roots="[]") == {"roots": []}
        assert json.loads((await emceepee.execute("raw", "roots")).text) == {"roots": []}


async def test_roots_that_are_none_are_refused(connect: Open) -> None:
    bad: list[tuple[Any, str]] = [
        ("file:///a", 'roots: expected a list, got "file:///a"'),
        (["file:///a"], r'roots\[0\]: expected an object, got "file:///a"'),
        ([{"name": "A"}], r"roots\[0\].uri: missing"),
        ([{"uri": "notfile"}], r'roots\[0\].uri: expected a file:// URI, got "notfile"'),
        ([{"uri": "https://h/a"}], r"roots\[0\].uri: expected a file:// URI, got .*"),
        ([{"uri": "file://"}], r"roots\[0\].uri: expected a file:// URI, got .*"),
    ]
    async with connect() as emceepee:
        for roots, problem in bad:
            error = await emceepee.fails("set_roots", roots=roots)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
            assert error["details"] == {"problems": [Like(problem)]}
        assert await emceepee.says("get_roots") == {"roots": []}
