"""What a server answers reaches the client as it came, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emceepee_client import MODERN, Emceepee, Open
from emceepee_lines import open_lines
from fake_backends import raw
from play import Play, answered, program, results_of

OURS = {"io.modelcontextprotocol/serverInfo": {"name": "emceepee", "version": "0.1.0"}}


def as_its_client_sees_it(emceepee: Emceepee, its_era: tuple[str, ...], said: Any) -> Any:
    """With what the eras add to a result: each client gets what its era wants."""
    if its_era or emceepee.era == "modern":
        said = {"resultType": "complete", **said}
    if emceepee.era == "modern":
        said = {**said, "_meta": {**OURS, **said.get("_meta", {})}}
    return said


def text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


AS_THEY_CAME: dict[str, dict[str, Any]] = {
    "echo": {
        "content": [{"type": "text", "text": "", "x-vendor": {"block": 1}}],
        "_meta": {"vendor/trace": "t-1"},
        "x-vendor": "top",
        "x-arguments": {},
    },
    "unknown_content": {
        "content": [{"type": "video", "data": "AAAA", "mimeType": "video/mp4", "x-vendor": 1}]
    },
    "structured_only": {"structuredContent": {"answer": 42, "nested": {"list": [1, None, 2.5]}}},
    "schema_mismatch": text("not what was promised")
    | {"structuredContent": {"n": "not an integer"}},
    "unicode": text("grüße 你好 🦑 \u2028\u2029\u0085 \x00 \ud7ff \U0010ffff e\u0301"),
    "split": text("grüße 🦑"),
    "batch": text("batched"),
    "garbage": text("after the garbage"),
}


async def test_answers_are_passed_on_as_they_came(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}, context="off") as emceepee:
        for tool, said in AS_THEY_CAME.items():
            answer = await emceepee.execute("raw", tool)
            assert answer.result == as_its_client_sees_it(emceepee, its_era, said), tool
            # A task's result is the same, as often as it is asked for.
            task_id = await emceepee.start_task("raw", tool)
            for _ in range(2):
                again = await emceepee.call("get_task_result", task_id=task_id)
                assert again.result == answer.result, tool


async def test_context_comes_behind_what_the_server_said(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.connected("raw")
        await emceepee.start_task("raw", "string_id_question")
        # On pipes nobody knows whose question it is: one that comes later would be of a call.
        await emceepee.question()
        for tool in "structured_only", "unknown_content", "schema_mismatch":
            answer = await emceepee.execute("raw", tool)
            assert answer.open_questions
            said = dict(AS_THEY_CAME[tool])
            assert answer.content == said.pop("content", [])
            result = dict(answer.result)
            assert len(result.pop("content")) > len(answer.content)
            assert result == said


async def test_arguments_reach_the_server_as_they_came(connect: Open) -> None:
    odd = {
        "": None,
        "unicode": "🦑\x00\u2028",
        "deep": [[[{"a": [1.5, -0.0, 10**30]}]]],
        "n": 1e300,
    }
    async with connect({"raw": raw()}) as emceepee:
        assert (await emceepee.execute("raw", "echo", odd)).result["x-arguments"] == odd


async def test_five_megabytes_are_passed_on(connect_as_either: Open) -> None:
    whole = {"inline_bytes": 0}
    async with connect_as_either({"raw": raw()}, results=whole) as emceepee:
        answer = await emceepee.execute("raw", "big", {"size": 5_000_000})
        assert answer.text == "x" * 5_000_000
        task_id = await emceepee.start_task("raw", "big", {"size": 5_000_000})
        answer = await emceepee.call("get_task_result", task_id=task_id)
        assert answer.text == "x" * 5_000_000


async def test_a_message_that_is_too_long_ends_only_its_own_connection(connect: Open) -> None:
    settings = {"limits": {"message": 100_000}, "results": {"inline_bytes": 0}}
    server = raw() | {"restart": {"base_delay_ms": 10, "max_delay_ms": 10, "max_attempts": None}}
    async with connect({"raw": server, "other": raw()}, **settings) as emceepee:
        await emceepee.connected("raw", "other")
        assert len((await emceepee.execute("raw", "big", {"size": 90_000})).text) == 90_000
        error = await emceepee.fails("execute_tool", server="raw", tool="big")
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        lost = await emceepee.event("server_disconnected")
        assert "message too long (limit 100000 bytes)" in lost["data"]["reason"]
        assert (await emceepee.execute("other", "echo", {"text": "on"})).text == "on"
        assert (await emceepee.execute("raw", "echo", {"text": "back"})).text == "back"


async def test_an_answer_that_is_none_is_an_error(connect: Open, its_era: tuple[str, ...]) -> None:
    async with connect({"raw": raw(*its_era)}) as emceepee:
        error = await emceepee.fails("execute_tool", server="raw", tool="bad_result")
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "invalid response from the server: []" in error["message"]
        assert (await emceepee.execute("raw", "echo", {"text": "on"})).text == "on"


async def test_noise_of_a_server_is_logged(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        await emceepee.execute("raw", "garbage")
        logs = (await emceepee.says("get_logs", sources=["stdout"]))["logs"]
        assert [entry["data"] for entry in logs] == [
            "this is not JSON",
            '{"broken": ',
            "\ufffd\ufffd\x00",
            '"a string"',
            "12",
            '{"neither": "nor"}',
        ]


# Results that no SDK would make, from a server that says just what it is told to say.


@pytest.fixture
def parrot(tmp_path: Path) -> dict[str, Any]:
    return program(Play({"tools/call": [answered("@RAW@")]}, results=results_of(["x"])), tmp_path)


async def test_odd_results_harm_nobody(connect_as_either: Open, parrot: dict[str, Any]) -> None:
    odd: dict[str, Any] = {
        '{"content":[],"_meta":"text"}': {"content": [], "_meta": "text"},
        '{"content":[],"_meta":[1]}': {"content": [], "_meta": [1]},
        '{"content":"text","isError":"yes"}': {"content": "text", "isError": "yes"},
        '{"content":null}': {"content": None},
        "{}": {},
        '{"content":[],"n":123456789012345678901234567890}': {
            "content": [],
            "n": 12345678901234567890 * 10**10 + 1234567890,
        },
        '{"content":[],"n":NaN}': {"content": [], "n": None},
    }
    async with connect_as_either({"parrot": parrot}, context="off") as emceepee:
        for said, wanted in odd.items():
            result = (await emceepee.execute("parrot", "x", {"say": said})).result
            if emceepee.era == "modern":
                assert result.pop("resultType") == "complete"
                # What is no object can carry nothing of ours.
                theirs = wanted.get("_meta")
                wanted = wanted | {"_meta": OURS | (theirs if isinstance(theirs, dict) else {})}
            assert result == wanted, said


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_what_json_can_say_and_utf8_cannot_is_passed_on(
    tmp_path: Path, parrot: dict[str, Any], era: str
) -> None:
    """Half a surrogate pair, as JavaScript makes when it cuts a text; and nesting, to a bound."""
    half = '{"content":[{"type":"text","text":"cut \\ud83e"}]}'
    deep = '{"content":[],"deep":' + "[" * 198 + "]" * 198 + "}"
    too_deep = '{"content":[],"deep":' + "[" * 199 + "]" * 199 + "}"
    arguments = {"server": "parrot", "tool": "x"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "pipes", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with open_lines(tmp_path, {"parrot": parrot}, context="off") as lines:
        if era == "handshake":
            await lines.initialize()
            meta = {}
        for number, said in enumerate((half, deep, too_deep)):
            params = {"name": "execute_tool", "arguments": {**arguments, "args": {"say": said}}}
            answer = await lines.request(number, "tools/call", params | {"_meta": meta})
            if said is half:
                assert answer["result"]["content"] == [{"type": "text", "text": "cut \ud83e"}]
            elif said is too_deep:
                assert "is nested deeper than 200 levels" in str(answer["result"])
            else:
                depth, value = 0, answer["result"]["deep"]
                while value:
                    depth, (value,) = depth + 1, value
                assert depth == 197
