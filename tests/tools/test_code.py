"""Scripts: what they are given, what becomes of their calls, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import Emceepee, Open
from fake_backends import Journal, raw
from like import ULID

EVERYTHING = """
first = await servers.raw.echo(text="one")
both = await asyncio.gather(call_tool("raw", "echo", {"n": 2}), servers.raw.echo({"n": 3}))
only = await call_tool("raw", "structured_only")
plain = await call_tool("raw", "stderr", {"text": "x"})
listed = await list_servers()
tools = await list_tools("raw", tool="^echo$")
found = await list_resources(server="raw")
templates = await list_resource_templates()
sought = await search("unknown content", schemas=0)
contents = await read_resource("raw", "raw://text")
prompts = await list_prompts("raw")
log("done", {"n": 1})
print("printed", 2)
await sleep(0.01)
caught = []
for server, tool in ("raw", "no_such_tool"), ("nobody", "echo"), ("raw", "rpc_error"):
    try:
        await call_tool(server, tool)
    except ToolError as error:
        caught.append(str(error))
{
    "first": first, "both": both, "only": only, "plain": plain, "caught": caught,
    "servers": [each["name"] for each in listed["servers"]],
    "tools": [each["name"] for group in tools["tools"] for each in group["tools"]],
    "resources": len(found["resources"]), "templates": "resource_templates" in templates,
    "sought": "unknown_content" in str(sought), "contents": contents,
    "prompts": len(prompts["prompts"]),
}
"""


async def script(emceepee: Emceepee, code: str, **options: Any) -> Any:
    """What it comes to, which is said twice in the same way."""
    answer = await emceepee.call("codemode_execute", code=code, **options)
    said = answer.json
    given = dict(answer.result["structuredContent"])
    given.pop("emceepee", None)
    assert given == said
    assert {"result", "logs", "calls", "duration_ms"} <= said.keys()
    return said


async def test_a_script_makes_many_calls_and_is_given_data(connect: Open, journal: Journal) -> None:
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        said = await script(emceepee, EVERYTHING)
        result = said["result"]
        assert said["calls"] == 15
        assert said["logs"] == ['done {"n": 1}', "printed 2"]
        assert result["first"] == "one"
        assert result["only"] == {"answer": 42, "nested": {"list": [1, None, 2.5]}}
        assert result["plain"] == "written"
        assert result["caught"] == [
            f"TOOL_ERR_NOT_FOUND: server 'raw' has no tool 'no_such_tool'; {SHOWS}",
            f"TOOL_ERR_SERVER_NOT_FOUND: no server 'nobody'; there are: raw. {TELLS}",
            f"TOOL_ERR_EXECUTION_FAILED: {UNLUCKY}",
        ]
        assert result["servers"] == ["raw"]
        assert result["tools"] == ["echo"]
        assert result["sought"] is True
        assert result["contents"][0]["text"] == "text of raw://text"
        assert (result["resources"], result["prompts"], result["templates"]) == (5, 2, True)
        sent = [entry["params"]["arguments"] for entry in journal.of("tools/call")]
        assert sent[0] == {"text": "one"}
        assert sorted(each.get("n", 0) for each in sent[1:3]) == [2, 3]
        assert (await emceepee.says("list_tasks", include_completed=True))["tasks"] == []

        # JSON in a text is data, a tool's error an exception with its words, blocks are blocks.
        said = await script(emceepee, KINDS)
        assert said["result"] == [{"a": [1]}, "in words", "ToolError", "video", None]

        # What a model does wrong: it is told what, where, and what to do.
        for code, wanted in MISTAKES.items():
            error = await emceepee.fails("codemode_execute", code=code)
            assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
            assert error["message"] == f"the script failed: {wanted}", error["message"]
            assert {"logs", "calls", "duration_ms"} <= error["details"].keys()
        said = await script(emceepee, 'call_tool("raw", "never")\n3')
        assert said["result"] == 3
        assert "await what is to be done" in said["logs"][0]

        # Bounds of what is said, which say how much there is.
        said = await script(emceepee, 'for n in range(9000): log("line", n)\n"x" * 1_000_000')
        assert len(json.dumps(said, ensure_ascii=False)) < 16 * 1024
        assert said["result"] == "x" * len(said["result"])
        omitted = said["result_omitted"]
        assert omitted["of"] == 1_000_002
        part = {"id": omitted["result"], "bytes": [999_990, 10**9]}
        assert (await emceepee.call("read_result", **part)).texts[0] == "x" * 10
        assert said["logs"][-1] == "line 8999"
        assert said["logs_omitted"]["lines"] == 9000 - len(said["logs"])
        said = await script(emceepee, "[{'row': n, 'paid': n != 4321} for n in range(5000)]")
        asked = {"id": said["result_omitted"]["result"], "path": "[?!paid].row"}
        assert json.loads((await emceepee.call("read_result", **asked)).texts[0]) == [4321]

        for wrong in {"timeout_ms": 0, "on_timeout": "end"}, {"on_timeout": "later"}:
            error = await emceepee.fails("codemode_execute", code="1", **wrong)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"


SHOWS = "list_tools shows what it has"
TELLS = "list_servers tells more, add_server adds one"
UNLUCKY = "server 'raw' answered tools/call with an error: no such luck"

KINDS = """
parsed = await servers.raw.echo(text='{"a": [1]}')
try:
    await servers.raw.structured(value={"x": 1}, is_error=True)
except ToolError as error:
    said = str(error)
try:
    await servers.raw.structured(value={"x": 1}, is_error=True)
except Exception as error:
    kind = "ToolError" if isinstance(error, ToolError) else "?"
blocks = await servers.raw.unknown_content()
return [parsed, said, kind, blocks[0]["type"], None]
"""

MISTAKES = {
    "x = 1\nfor n in range(3)\n    n": (
        "SyntaxError: Expected `:`, found newline\n"
        "  line 2\n"
        "    for n in range(3)\n"
        "                     ^"
    ),
    'async def f(n):\n    return await call_tool("raw", "rpc_error")\nawait f(1)': (
        "ToolError: TOOL_ERR_EXECUTION_FAILED: server 'raw' answered tools/call with an error: no "
        "such luck\n"
        "  line 3\n"
        "    await f(1)\n"
        "    ^^^^^^^^^^\n"
        "  line 2, in f\n"
        '    return await call_tool("raw", "rpc_error")\n'
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
    'x = call_tool("raw", "echo")\nx["a"]': (
        "TypeError: 'coroutine' object is not subscriptable (await the call: what a script calls "
        "outside returns an awaitable)\n"
        "  line 2\n"
        '    x["a"]\n'
        "    ^^^^^^"
    ),
    'await servers.raw.echo("text")': (
        "TypeError: echo() takes its arguments by their names, or in one dict\n"
        "  line 1\n"
        '    await servers.raw.echo("text")\n'
        "          ^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
    'await call_tool("raw", "echo", {}, 3)': (
        "ToolError: call_tool() takes server, tool, args by position, and was given 4 values\n"
        "  line 1\n"
        '    await call_tool("raw", "echo", {}, 3)\n'
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
    'await call_tool("raw", tol="echo")': (
        'ToolError: TOOL_ERR_INVALID_ARGUMENTS: call_tool: unknown key "tol", did you mean '
        '"tool"?; tool: missing; it takes server, tool, args\n'
        "  line 1\n"
        '    await call_tool("raw", tol="echo")\n'
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
    'await call_tool("raw", "echo", {"x": float("nan")})': (
        "ValueError: call_tool(): nan is not JSON; convert it first\n"
        "  line 1\n"
        '    await call_tool("raw", "echo", {"x": float("nan")})\n'
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^"
    ),
}


async def test_a_script_that_takes_long_becomes_a_task_or_ends(
    connect: Open, journal: Journal, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    slow = f'log("begins")\nawait servers.raw.slow(file={str(done)!r})\n'
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        await emceepee.connected("raw")

        # As a task, like any call.
        answer = await emceepee.call("codemode_execute", code=f"{slow}5", timeout_ms=300)
        assert answer.texts[0].startswith("Tool call exceeded timeout (300ms). Promoted to task")
        task_id = answer.task_id
        assert task_id == ULID
        await journal.wait_for(lambda entry: entry.get("marker") == "slow started")
        task = (await emceepee.says("list_tasks", server="emceepee"))["tasks"][0]
        assert (task["server"], task["tool"]) == ("emceepee", "codemode_execute")
        assert task["status_message"] == "1 calls: begins"
        waits = await emceepee.fails("get_task_result", task_id=task_id, timeout_ms=10)
        assert waits["code"] == "TOOL_ERR_TIMEOUT"
        done.touch()
        assert (await emceepee.event("task_completed"))["data"]["taskId"] == task_id
        said = await emceepee.says("get_task_result", task_id=task_id)
        assert (said["result"], said["logs"], said["calls"]) == (5, ["begins"], 1)
        done.unlink()

        # Ended: what is under way is cancelled, and nothing else is called, whatever it catches.
        stubborn = f"""
while True:
    try:
        {slow.splitlines()[1]}
    except Exception:
        pass
"""
        for patience in (1000, 5000, 25_000):  # a program starts in the first, as a rule
            code = f"log('x'){stubborn}"
            error = await emceepee.fails(
                "codemode_execute", code=code, timeout_ms=patience, on_timeout="end"
            )
            assert error["code"] == "TOOL_ERR_TIMEOUT"
            assert f"ended after {patience} ms" in error["message"]
            if error["details"]["calls"]:
                break
        assert (error["details"]["calls"], error["details"]["logs"]) == (1, ["x"])
        await journal.wait_for(lambda entry: entry.get("marker") == "slow cancelled")

        # So it is with cancel_task.
        answer = await emceepee.call("codemode_execute", code=stubborn, timeout_ms=0)
        await journal.wait_for(lambda entry: entry.get("marker") == "slow started", 3)
        assert (await emceepee.says("cancel_task", task_id=answer.task_id))["success"]
        await journal.wait_for(lambda entry: entry.get("marker") == "slow cancelled", 2)
        assert (await emceepee.task_over(answer.task_id))["status"] == "cancelled"

        # And if its client does not want it any more.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(script, emceepee, stubborn)
            await journal.wait_for(lambda entry: entry.get("marker") == "slow started", 4)
            nursery.cancel_scope.cancel()
        await journal.wait_for(lambda entry: entry.get("marker") == "slow cancelled", 3)
        # The session goes on, and nobody has called anything else.
        assert (await script(emceepee, "1 + 1"))["result"] == 2
        assert len(journal.of("tools/call")) == 4


async def test_what_a_scripts_call_is_asked_reaches_the_client(
    connect: Open, journal: Journal
) -> None:
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        code = "return await servers.raw.string_id_question()"
        answer = await emceepee.call("codemode_execute", code=code)
        assert "server raw asks (" in answer.texts[0]
        question = await emceepee.question()
        await emceepee.says(
            "respond_to_elicitation", request_id=question["requestId"], action="decline"
        )
        said = await emceepee.says("get_task_result", task_id=answer.task_id)
        assert "decline" in json.dumps(said["result"])


async def test_calls_are_bounded_and_policies_asked(connect: Open, journal: Journal) -> None:
    few = raw(*journal.flags) | {"allowed_tools": ["echo"]}
    settings = {"codemode": {"calls": 5, "cpu_ms": 500, "memory": 8 * 2**20}}
    async with connect({"raw": few}, **settings) as emceepee:
        said = await script(emceepee, GREEDY)
        denied, *_ = said["result"]
        assert denied == "TOOL_ERR_NOT_FOUND"
        assert said["result"][1:] == [None] * 4 + ["TOOL_ERR_LIMIT"] * 3
        assert said["calls"] == 5
        assert [entry["params"]["name"] for entry in journal.of("tools/call")] == ["echo"] * 4

        for code, wanted in (
            ("while True: pass", "TimeoutError: feed time limit exceeded"),
            ("x = 'a' * 10**9", "MemoryError: memory limit exceeded"),
            ("def f(): f()\nf()", "RecursionError"),
        ):
            error = await emceepee.fails("codemode_execute", code=code)
            assert wanted in error["message"]


GREEDY = """
seen = []
for tool in ["never"] + ["echo"] * 7:
    try:
        await call_tool("raw", tool)
        seen.append(None)
    except ToolError as error:
        seen.append(str(error).split(":")[0])
seen
"""


LONG = """
prompt = await get_prompt("raw", "greet", {"who": "Ada"})
lines = await read_result("ID", lines=[2, 3])
found = await read_result(id="ID", grep="row 4999", around=0)
rows, following = 0, {"lines": [1, 5000]}
while following:
    said = await read_result("ID", **following)
    rows, following = rows + said["text"].count("row"), said.get("next")
[prompt["messages"][0]["content"]["text"], lines["text"], lines["of"], found["text"], rows]
"""


async def test_a_script_gets_prompts_and_reads_what_was_too_long(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        text = "\n".join(f"row {n}" for n in range(1, 5001))
        answer = await emceepee.execute("raw", "echo", {"text": text})
        result = json.loads(answer.content[0]["text"])["result"]
        said = await script(emceepee, LONG.replace("ID", result))
        assert said["result"] == ["Greet Ada.", "row 2\nrow 3\n", 5000, "4999:row 4999", 5000]


AT_ONCE = """
async def one_more():
    while True:
        await servers.raw.echo(text="one more")
await asyncio.gather(servers.raw.slow(), servers.raw.slow(), one_more())
"""


async def test_calls_that_are_gathered_count_in_the_limit_of_the_session(
    connect: Open, journal: Journal
) -> None:
    # It is one of them itself, so that two are under way at once.
    async with connect({"raw": raw(*journal.flags)}, limits={"calls": 3}) as emceepee:
        await emceepee.connected("raw")
        error = await emceepee.fails("codemode_execute", code=AT_ONCE)
        assert "TOOL_ERR_LIMIT" in error["message"]
        assert "limits.calls" in error["message"]
        # What it has left behind is over, and its places are free.
        assert (await emceepee.execute("raw", "echo", {"text": "after it"})).text == "after it"


@pytest.mark.parametrize("gathered", [1, 20])
async def test_gathered_calls_are_under_way_at_once(
    connect: Open, journal: Journal, tmp_path: Path, gathered: int
) -> None:
    done = tmp_path / "done"
    code = (
        f"await asyncio.gather(*[servers.raw.slow(file={str(done)!r}) for _ in range({gathered})])"
    )
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        async with trio.open_nursery() as nursery:

            async def all_of_them() -> None:
                said = await script(emceepee, code)
                assert said["result"] == ["the file is there"] * gathered

            nursery.start_soon(all_of_them)
            await journal.wait_for(lambda entry: entry.get("marker") == "slow started", gathered)
            done.touch()
