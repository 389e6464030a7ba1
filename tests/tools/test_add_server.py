"""Adding servers."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

from emceepee_client import Emceepee, Open, is_running
from fake_backends import HERE, Journal, demo, raw
from like import FOOTPRINT, PID, Between, Like

SCRIPT = str(HERE / "raw_server.py")


async def names(emceepee: Emceepee) -> list[str]:
    return [server["name"] for server in (await emceepee.says("list_servers"))["servers"]]


async def test_an_added_server_is_connected_and_used(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either() as emceepee:
        said = await emceepee.says("add_server", name="new", **raw(*its_era))
        tools = said.pop("tools")
        capabilities = said.pop("capabilities")
        assert said == {
            "server": "new",
            "status": "connected",
            "replaced": False,
            "instructions": "Raw instructions.",
        }
        assert tools[:2] == ["echo", "unknown_content"]
        assert capabilities["experimental"] == {"vendor/thing": {"x": 1}}
        assert (await emceepee.execute("new", "echo", {"text": "there"})).text == "there"
        # Others of the same principal are told who added it; there are none on stdio.
        assert [(event["type"], event["server"]) for event in emceepee.events] == [
            ("process_started", "new"),
            ("server_connected", "new"),
        ]
        (listed,) = (await emceepee.says("list_servers", detail="full"))["servers"]
        assert listed["target"] == " ".join([sys.executable, SCRIPT, *its_era])


async def test_a_server_without_tools_or_instructions_says_so_little(connect: Open) -> None:
    async with connect() as emceepee:
        server = raw("--no-capability", "tools", "--no-capability", "experimental")
        said = await emceepee.says("add_server", name="new", **server)
        assert said["tools"] == []
        assert "tools" not in said["capabilities"]
        assert "errors" not in said


async def test_a_server_that_cannot_be_reached_leaves_nothing_behind(
    connect: Open, journal: Journal
) -> None:
    async with connect() as emceepee:
        server = raw("--exit-at-once", 5, *journal.flags)
        error = await emceepee.fails("add_server", name="new", **server)
        assert error == {
            "code": "TOOL_ERR_CONNECT_FAILED",
            "message": "server 'new': process exited (code 5) before it answered; it said: raw: "
            "cannot start, the configuration is missing; it is not added, correct it and add it "
            "again",
            "details": {
                "stderr": ["raw: cannot start, the configuration is missing"],
                "code": 5,
            },
        }
        assert await names(emceepee) == []
        error = await emceepee.fails("execute_tool", server="new", tool="echo")
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
        assert "server_added" not in [event["type"] for event in emceepee.events]


async def test_a_server_that_hangs_is_given_up_in_time(connect: Open) -> None:
    async with connect() as emceepee:
        server = raw("--silent") | {"connect_timeout_ms": 300}
        error = await emceepee.fails("add_server", name="new", **server)
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert "no answer within 300 ms" in error["message"]
        pid = (await emceepee.event("process_started"))["data"]["pid"]
        await emceepee.event("process_stopped")
        assert not is_running(pid)
        assert await names(emceepee) == []


async def test_a_server_may_be_kept_although_it_failed(connect: Open, journal: Journal) -> None:
    ready = journal.path.parent / "ready"
    retry = {"base_delay_ms": 10, "max_delay_ms": 10, "max_attempts": None}
    async with connect() as emceepee:
        server = raw("--start-when", ready) | {"connect_timeout_ms": 1000, "restart": retry}
        said = await emceepee.says("add_server", name="new", **server, keep_on_failure=True)
        assert said == {
            "server": "new",
            "status": Like("reconnecting|connecting"),
            "replaced": False,
            "capabilities": {},
            "tools": [],
        }
        assert await names(emceepee) == ["new"]
        ready.touch()
        await emceepee.connected("new")
        assert (await emceepee.execute("new", "echo", {"text": "late"})).text == "late"


async def test_the_same_server_again_changes_nothing(connect: Open) -> None:
    async with connect({"configured": raw()}) as emceepee:
        await emceepee.says("add_server", name="new", **raw())
        await emceepee.connected("configured", "new")
        pids = [await emceepee.pid(name) for name in ("configured", "new")]
        seen = len(emceepee.events)
        for name in ("configured", "new"):
            said = await emceepee.says("add_server", name=name, **raw())
            assert said["replaced"] is False
            assert said["status"] == "connected"
            assert "echo" in said["tools"]
        assert pids == [await emceepee.pid(name) for name in ("configured", "new")]
        assert emceepee.events[seen:] == []


async def test_another_target_takes_the_place_of_the_old(connect: Open) -> None:
    async with connect() as emceepee:
        await emceepee.says("add_server", name="new", **raw())
        old = await emceepee.pid("new")
        task = await emceepee.start_task("new", "never")
        said = await emceepee.says("add_server", name="new", **demo())
        assert said["replaced"] is True
        assert "ask_name" in said["tools"]
        await emceepee.event("process_stopped", pid=old)
        assert not is_running(old)
        assert (await emceepee.task_over(task))["status"] == "failed"
        assert await names(emceepee) == ["new"]
        assert (await emceepee.execute("new", "add", {"a": 1, "b": 2})).result[
            "structuredContent"
        ] == {"sum": 3}


async def test_a_failed_replacement_leaves_the_old_server_alone(connect: Open) -> None:
    async with connect() as emceepee:
        await emceepee.says("add_server", name="new", **raw())
        pid = await emceepee.pid("new")
        error = await emceepee.fails("add_server", name="new", **raw("--exit-at-once", 1))
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert await emceepee.pid("new") == pid
        assert (await emceepee.execute("new", "echo", {"text": "still"})).text == "still"


async def test_a_configured_name_is_not_taken_over(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        pid = await emceepee.pid("raw")
        error = await emceepee.fails("add_server", name="raw", **demo())
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        assert "configured" in error["message"]
        assert await emceepee.pid("raw") == pid


async def test_a_removed_configured_server_can_be_added_again(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.says("remove_server", name="raw")
        said = await emceepee.says("add_server", name="raw", **demo())
        assert said["status"] == "connected"
        assert "ask_name" in said["tools"]


async def test_a_server_whose_list_is_a_lie_is_added_nevertheless(connect: Open) -> None:
    async with connect() as emceepee:
        said = await emceepee.says("add_server", name="liar", **raw("--same-cursor"))
        assert said["status"] == "connected"
        assert said["tools"] == []
        assert said["errors"] == [{"server": "liar", "error": Like(".*pages its tools in a .*")}]
        assert await names(emceepee) == ["liar"]


BAD: list[tuple[dict[str, Any], list[str]]] = [
    ({"name": "x"}, [".*needs a url or a command"]),
    ({"name": "x", "command": "a", "url": "http://localhost/"}, [".*both a url and a command.*"]),
    ({"name": "a b", "command": "a"}, ["name: .*"]),
    ({"name": "emceepee", "command": "a"}, ["name: .*our own name.*"]),
    ({"name": "x", "url": "ftp://localhost/"}, ["url: expected an http or https URL.*"]),
    ({"name": "x", "command": "a", "headers": {"a": "b"}}, ["headers: .*"]),
    ({"name": "x", "command": "a", "args": "b"}, ["args: expected a list, .*"]),
    ({"name": "x", "command": "a", "args": ["b", 1]}, [r"args\[1\]: expected a string, got 1"]),
    ({"name": "x", "comand": "a"}, ['unknown key "comand".*command.*', ".*needs a url or .*"]),
    (
        {"name": "x", "command": "a", "restart": {"max_attempts": "x", "jitter": 2}},
        ['restart.max_attempts: expected an integer, got "x"', "restart.jitter: out of range.*"],
    ),
    ({"name": "x", "command": "a", "connect_timeout_ms": 1}, ["connect_timeout_ms: .*100 to.*"]),
]


async def test_whatever_is_wrong_with_an_entry_is_told(connect: Open) -> None:
    async with connect() as emceepee:
        for arguments, problems in BAD:
            error = await emceepee.fails("add_server", **arguments)
            assert error == {
                "code": "TOOL_ERR_INVALID_ARGUMENTS",
                "message": Like("add_server: .*"),
                "details": {"problems": [Like(problem) for problem in problems]},
            }
        assert await names(emceepee) == []


async def test_secrets_are_neither_shown_nor_logged(connect: Open) -> None:
    async with connect() as emceepee:
        secret = "s3cr3t-v4lue"
        server = raw("--page", 50) | {"env": {"API_TOKEN": secret}}
        await emceepee.says("add_server", name="new", **server)
        where = (await emceepee.execute("new", "where")).text
        assert secret in where  # it did get there
        await emceepee.fails("add_server", name="x", command="no-such-program", env={"A": secret})
        shown = [
            await emceepee.says("list_servers", detail="full"),
            await emceepee.status("new"),
            emceepee.events,
            emceepee.stderr.read_text(),
        ]
        assert secret not in str(shown)


async def test_a_url_where_nobody_listens_is_an_error(connect: Open) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/mcp"
        async with connect() as emceepee:
            error = await emceepee.fails("add_server", name="web", url=url)
            assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
            assert url in error["message"]
            assert await names(emceepee) == []


async def test_spawning_may_be_denied(connect: Open) -> None:
    settings = {"policy": {"spawn": "deny"}}
    async with connect({"configured": raw()}, **settings) as emceepee:
        error = await emceepee.fails("add_server", name="new", **raw())
        assert error == {
            "code": "TOOL_ERR_DENIED",
            "message": Like(r"policy\.spawn is deny.*"),
        }
        await emceepee.connected("configured")
        assert await names(emceepee) == ["configured"]


async def test_spawning_may_be_restricted_to_whole_command_lines(connect: Open) -> None:
    allowed = [[sys.executable, SCRIPT, "--page", "*"]]
    settings = {"policy": {"spawn": "allowlist", "spawn_allowlist": allowed}}
    async with connect(**settings) as emceepee:
        said = await emceepee.says("add_server", name="new", **raw("--page", 7))
        assert said["status"] == "connected"
        for flags in ((), ("--page",), ("--page", 7, "--tools", 1), ("--tools", 7)):
            error = await emceepee.fails("add_server", name="other", **raw(*flags))
            assert error["code"] == "TOOL_ERR_DENIED"
            assert "policy.spawn_allowlist" in error["message"]
        assert await names(emceepee) == ["new"]


def evil(folder: Path) -> Path:
    """A folder that runs code of whoever gets it into a PATH, a PYTHONPATH, or a cwd."""
    ran = folder / "ran"
    program = f"#!{sys.executable}\nopen({str(ran)!r}, 'w')\n"
    for name in ("mcp-safe", "sitecustomize.py", "script.py"):
        (folder / name).write_text(program)
        (folder / name).chmod(0o755)
    return ran


async def test_a_listed_command_line_runs_no_code_of_clients(connect: Open, tmp_path: Path) -> None:
    ran, hold = evil(tmp_path), {"keep_on_failure": True}
    allowed = [["mcp-safe", "--stdio"], [sys.executable, SCRIPT], [sys.executable, "script.py"]]
    settings = {"policy": {"spawn": "allowlist", "spawn_allowlist": allowed}}
    safe = {"command": "mcp-safe", "args": ["--stdio"]}
    script = {"command": sys.executable, "args": ["script.py"]}
    async with connect(**settings) as emceepee:
        for server in (
            safe | {"env": {"PATH": str(tmp_path)}},
            raw() | {"env": {"PYTHONPATH": str(tmp_path)}},
            raw() | {"env": {"HARMLESS": "x"}},
            raw() | {"cwd": str(tmp_path)},
            script | {"cwd": str(tmp_path)},
            safe | {"command": str(tmp_path / "mcp-safe")},
            {"command": "env", "args": [f"PATH={tmp_path}", "mcp-safe", "--stdio"]},
            {"command": sys.executable, "args": ["-c", f"open({str(ran)!r}, 'w')"]},
        ):
            error = await emceepee.fails("add_server", name="new", **server, **hold)
            assert error["code"] == "TOOL_ERR_DENIED"
            assert "policy.spawn_allowlist" in error["message"]
        assert await names(emceepee) == []
        assert not ran.exists()
        assert (await emceepee.says("add_server", name="new", **raw()))["status"] == "connected"


async def test_a_client_says_what_the_operator_lets_it_say(connect: Open, tmp_path: Path) -> None:
    entry = {"command": [sys.executable, SCRIPT], "env": ["ITS_TOKEN"], "cwd": str(tmp_path)}
    settings = {"policy": {"spawn": "allowlist", "spawn_allowlist": [entry]}}
    async with connect(**settings) as emceepee:
        server = raw() | {"env": {"ITS_TOKEN": "${HOME}"}}
        await emceepee.says("add_server", name="new", **server)
        here = json.loads((await emceepee.execute("new", "where")).text)
        assert here["cwd"] == str(tmp_path)
        assert here["env"]["ITS_TOKEN"] == "${HOME}"  # what is ours is not told
        # The same again, spelled out, is the same.
        said = await emceepee.says("add_server", name="new", **server, cwd=str(tmp_path))
        assert said["replaced"] is False


METADATA = (
    "169.254.169.254",
    "2852039166",
    "0xA9FEA9FE",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[fd00:ec2::254]",
    "100.100.100.200:8080",
)


async def test_no_spelling_leads_to_the_metadata_of_a_cloud(connect: Open) -> None:
    async with connect() as emceepee:
        for host in METADATA:
            for kind in ("mcp", "sse"):
                server = {"name": "new", "url": f"http://{host}/{kind}"}
                error = await emceepee.fails("add_server", **server, keep_on_failure=True)
                assert error == {
                    "code": "TOOL_ERR_DENIED",
                    "message": Like(
                        r"server 'new': policy\.network is restricted and .* a cloud metadata "
                        "address; only the operator can allow it, by .*"
                    ),
                }
        assert await names(emceepee) == []


async def test_what_the_operator_configures_is_the_operators_choice(connect: Open) -> None:
    """A link-local address, of a network that is this machine: it is tried, and nobody is there."""
    nobody = {"url": "http://[fe80::1%lo]:9/mcp", "connect_timeout_ms": 1000}
    async with connect({"configured": nobody | {"reconnect": {"enabled": False}}}) as emceepee:
        error = await emceepee.fails("execute_tool", server="configured", tool="echo")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        error = await emceepee.fails("add_server", name="new", **nobody)
        assert error["code"] == "TOOL_ERR_DENIED"
        assert "a link-local address" in error["message"]
    async with connect(policy={"network": "allow"}) as emceepee:
        error = await emceepee.fails("add_server", name="new", **nobody)
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"


async def test_there_is_a_limit_of_servers(connect: Open) -> None:
    async with connect({"one": raw()}, limits={"servers": 2}) as emceepee:
        await emceepee.says("add_server", name="two", **raw())
        error = await emceepee.fails("add_server", name="three", **raw())
        assert error == {"code": "TOOL_ERR_LIMIT", "message": Like(r".*limits\.servers.*")}
        # Replacing one needs no room.
        said = await emceepee.says("add_server", name="two", **raw("--page", 10))
        assert said["replaced"] is True
        await emceepee.says("remove_server", name="two")
        assert (await emceepee.says("add_server", name="three", **raw()))["status"] == "connected"


async def test_only_allowed_tools_are_listed_and_called(connect: Open, journal: Journal) -> None:
    async with connect() as emceepee:
        server = raw(*journal.flags) | {"allowed_tools": ["echo", "uni*"]}
        said = await emceepee.says("add_server", name="new", **server)
        assert said["tools"] == ["echo", "unicode"]
        listed = await emceepee.says("list_tools")
        (of_new,) = listed["tools"]
        assert [tool["name"] for tool in of_new["tools"]] == ["echo", "unicode"]
        assert (await emceepee.execute("new", "echo", {"text": "yes"})).text == "yes"
        hidden = await emceepee.fails("execute_tool", server="new", tool="big")
        missing = await emceepee.fails("execute_tool", server="new", tool="gib")
        assert hidden["code"] == missing["code"] == "TOOL_ERR_NOT_FOUND"
        assert hidden["message"] == missing["message"].replace("gib", "big")
        assert [call["params"]["name"] for call in journal.of("tools/call")] == ["echo"]


async def test_a_call_may_wait_for_a_server_that_is_being_added(connect: Open) -> None:
    """Adding one server delays neither the others nor itself."""
    async with connect({"raw": raw()}) as emceepee:
        said = await emceepee.says("add_server", name="slow", **raw("--slow-start", 0.3))
        assert said["status"] == "connected"
        status = await emceepee.status("slow")
        assert status["process"] == {"pid": PID, "started_at": Like(".*Z"), **FOOTPRINT}
        assert status["server"]["working_tasks"] == Between(0, 0)
