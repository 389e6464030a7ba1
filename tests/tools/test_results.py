"""Answers that are too long to be read: kept whole, shown as a preview, read in parts."""

from __future__ import annotations

import base64
import itertools
import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import GUARD, Answer, Emceepee, Open, write_config
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession
from emceepee_trio.config.bounds import KIB, MAX_PREVIEW_BYTES
from play import coded
from served import serve

BOUND = 16 * KIB

ANSWERS = """\
import base64

LINES = "".join(f"line {n}: grüße, the needle is {n * 7}\\n" for n in range(1, 5001))
ROWS = [{"id": n, "name": f"row {n}", "tags": ["a", "b"]} for n in range(1204)]
LONG = "x" * 70_000

WAYS = {
    "lines": {"content": [text(LINES)], "_meta": {"vendor/trace": "t"}},
    "error": {"content": [text("it failed because\\n" + LINES)], "isError": True},
    "rows": {"content": [text(json.dumps(ROWS))]},
    "beside": {"content": [text("short")], "_meta": {"vendor/long": LINES}},
    "all": {"content": [text("z" * 2_000_000)], "structuredContent": {"rows": ROWS * 5},
            "_meta": {"vendor/long": LINES}},
    "both": {"content": [text(json.dumps(ROWS))], "structuredContent": {"rows": ROWS}},
    "small": {"content": [text(LINES)], "structuredContent": {"count": 5000}},
    "structured": {"content": [], "structuredContent": {"rows": ROWS}},
    "values": {"content": [text("short")], "structuredContent": {"rows": ROWS * 5, "text": LINES}},
    "image": {"content": [
        text("a picture"),
        {"type": "image", "data": base64.b64encode(bytes(range(256)) * 300).decode(),
         "mimeType": "image/png"},
    ]},
    "audio": {"content": [
        {"type": "audio", "data": base64.b64encode(b"RIFF" * 8000).decode(),
         "mimeType": "audio/wav"},
    ]},
    "blocks": {"content": [text(f"block {n} " + "y" * 99) for n in range(1000)]},
    "cut": {"content": [text(LINES + "... 13 more items")]},
    "one": {"content": [text(LONG)]},
    "wide": {"content": [text("x" + "ü" * 40_000)]},
    "short": {"content": [text("z" * 16384)]},
    "longer": {"content": [text("z" * 16385)]},
    "odd": {"content": [text("\\ud83d half " * 3000)]},
}

contents = {"uri": "x://y", "mimeType": "text/markdown", "text": LINES}
error = {"code": -32050, "message": "no", "data": {"why": LINES}}
refused = json.dumps({"jsonrpc": "2.0", "id": "@ID@", "error": error}).encode()
results = {
    **results_of([*WAYS, "refuse"]),
    **greetings("a", {"tools": {}, "resources": {}, "prompts": {}}),
    "resources/read": {"contents": [contents]},
    "prompts/get": {"messages": [{"role": "user", "content": text(LINES)}]},
}
perform(Play({"tools/call refuse": [refused]}, tools=WAYS, results=results))
"""
LINES = "".join(f"line {n}: grüße, the needle is {n * 7}\n" for n in range(1, 5001))
SERVER = coded(ANSWERS)


def preview(answer: Answer, at: int = 0) -> Any:
    said = json.loads(answer.content[at]["text"])
    link = answer.content[at + 1]
    assert link["type"] == "resource_link"
    assert link["uri"] == f"emceepee://results/{said['result']}"
    assert (link["size"], link["mimeType"]) == (said["bytes"], said["type"])
    ways = "bytes" if "lines" not in said else "lines, bytes or grep"
    if said["type"] == "application/json":
        ways = "lines, bytes, grep or path"
    assert said["next"] == f"read_result with this id, and {ways}"
    assert len(json.dumps(answer.result["content"])) < 4 * KIB
    return said


def check_file(path: Path, state: Path) -> None:
    assert path.is_relative_to(state)
    assert path.read_text() == LINES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def is_there(path: str) -> bool:
    return Path(path).exists()


async def part(emceepee: Emceepee, **arguments: Any) -> tuple[str, Any]:
    answer = await emceepee.call("read_result", **arguments)
    assert answer.result["isError"] is False, answer.texts
    said, about = answer.texts
    size = len(json.dumps(answer.content, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    assert size <= BOUND
    return said, json.loads(about)


async def test_a_long_answer_is_shown_as_a_preview(connect_as_either: Open) -> None:
    async with connect_as_either({"a": SERVER}) as emceepee:
        answer = await emceepee.execute("a", "lines")
        said = preview(answer)
        assert "vendor/trace" in answer.result["_meta"]
        assert said["bytes"] == len(LINES.encode())
        assert (said["lines"], said["type"]) == (5000, "text/plain")
        head, tail, omitted = said["head"], said["tail"], said["omitted"]
        assert LINES.startswith(head)
        assert LINES.endswith(tail)
        assert head.endswith("\n")
        assert tail.startswith("line ")
        assert len((head + tail).encode()) <= MAX_PREVIEW_BYTES
        assert omitted["bytes"] == said["bytes"] - len((head + tail).encode())
        assert omitted["lines"] == 5000 - head.count("\n") - tail.count("\n")
        # An error stays one.
        answer = await emceepee.execute("a", "error")
        assert answer.result["isError"] is True
        assert preview(answer)["head"].startswith("it failed because\n")
        # And what is short is what it was.
        assert (await emceepee.execute("a", "short")).text == "z" * BOUND
        beside = (await emceepee.execute("a", "beside")).result
        assert beside["content"] == [{"type": "text", "text": "short"}]
        assert beside["_meta"]["vendor/long"] == LINES
        assert preview(await emceepee.execute("a", "longer"))["bytes"] == BOUND + 1
        # A task has one result, however often it is asked for.
        task = await emceepee.start_task("a", "lines")
        results = [await emceepee.call("get_task_result", task_id=task) for _ in range(2)]
        assert preview(results[0]) == preview(results[1])


async def test_what_it_looks_like_is_said(connect: Open) -> None:
    async with connect({"a": SERVER}) as emceepee:
        rows = preview(await emceepee.execute("a", "rows"))
        assert rows["shape"] == "array of 1,204 objects with keys id, name, tags"
        assert rows["type"] == "application/json"
        assert rows["head"].endswith("},")
        assert rows["tail"].lstrip().startswith('{"id"')
        both = await emceepee.execute("a", "both")
        assert "structuredContent" not in both.result
        shape = "object with keys rows (array of 1,204 objects with keys id, name, tags)"
        assert preview(both)["shape"] == rows["shape"]
        assert preview(both, 2)["shape"] == shape
        assert preview(await emceepee.execute("a", "structured"))["shape"] == shape
        values = await emceepee.execute("a", "values")
        assert "structuredContent" not in values.result
        assert values.content[0]["text"] == "short"
        shape = "object with keys rows (array of 6,020 objects with keys id, name, tags), text"
        assert preview(values, 1)["shape"] == shape
        small = await emceepee.execute("a", "small")
        assert small.result["structuredContent"] == {"count": 5000}
        assert preview(small)["shape"] == "text of 5,000 lines"
        blocks = preview(await emceepee.execute("a", "blocks"))
        assert (blocks["blocks"], blocks["lines"]) == (1000, 1000)
        assert "cannot be had" in preview(await emceepee.execute("a", "cut"))["note"]
        assert "note" not in preview(small)
        image = await emceepee.execute("a", "image")
        assert image.content[0]["text"] == "a picture"
        about = preview(image, 1)
        assert (about["type"], about["bytes"]) == ("image/png", 76_800)
        sound = preview(await emceepee.execute("a", "audio"))
        assert (sound["type"], sound["bytes"]) == ("audio/wav", 32_000)
        assert sound["shape"] == "audio, audio/wav, 32,000 bytes"
        read = await emceepee.call("read_result", id=about["result"], bytes=[256, 512])
        assert base64.b64decode(read.content[0]["resource"]["blob"]) == bytes(range(256))
        assert preview(await emceepee.execute("a", "odd"))["bytes"] > BOUND


async def test_resources_and_prompts_and_errors_are_kept_too(connect: Open) -> None:
    async with connect({"a": SERVER}) as emceepee:
        read = preview(await emceepee.call("read_resource", server="a", uri="x://y"))
        assert (read["type"], read["of"]) == ("text/markdown", "x://y")
        prompt = preview(await emceepee.call("get_prompt", server="a", name="p"))
        assert prompt["shape"].startswith("object with keys messages")
        error = await emceepee.fails("execute_tool", server="a", tool="refuse")
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert error["details"]["code"] == -32050
        said, _ = await part(emceepee, id=error["details"]["long"]["uri"], path="/data/why")
        assert LINES.startswith(said)


WRONG: tuple[dict[str, Any], ...] = (
    {"lines": [0, 1]},
    {"lines": [6000, 6001]},
    {"bytes": [5, 1]},
    {"lines": [1]},
    {"lines": [1, 2], "bytes": [1, 2]},
    {"grep": "("},
    {"around": 3},
)


async def test_it_is_read_in_parts(connect: Open) -> None:
    async with connect({"a": SERVER}) as emceepee:
        result = preview(await emceepee.execute("a", "lines"))["result"]
        said, about = await part(emceepee, id=result, lines=[100, 102])
        assert said == "".join(LINES.splitlines(keepends=True)[99:102])
        assert about == {"result": result, "lines": [100, 102], "of": 5000}
        said, about = await part(emceepee, id=result, lines=[-1, -1])
        assert said == LINES.splitlines(keepends=True)[-1]
        # All of it, as each part says.
        following: Any
        for following in ({"lines": [1, 5000]}, {"bytes": [0, 10**9]}):
            whole = ""
            while following:
                said, about = await part(emceepee, id=result, **following)
                whole, following = whole + said, about.get("next", {})
            assert whole == LINES
        # Wherever a part is asked for, it has whole characters.
        beginning = LINES.encode()[:16]
        for start, end in itertools.combinations(range(16), 2):
            said, about = await part(emceepee, id=result, bytes=[start, end])
            shown = about["bytes"]
            assert said.encode() == beginning[slice(*shown)]
            assert shown[0] <= start < end <= shown[1]
        said, about = await part(emceepee, id=result, grep=r"needle is 49\b", around=1)
        assert said == "\n".join(
            f"{n}{':' if n == 7 else '-'}line {n}: grüße, the needle is {n * 7}" for n in (6, 7, 8)
        )
        assert (about["matches"], about["shown"]) == (1, 1)
        said, about = await part(emceepee, id=result, grep="grüße")
        assert about["matches"] == 5000
        assert about["more"] == 5000 - about["shown"]
        seen = said.count("\n") + 1
        while following := about.get("next"):
            said, about = await part(emceepee, id=result, **following)
            seen += said.count("\n") + 1
        assert seen == 5000
        assert (await part(emceepee, id=result, grep="NEEDLE"))[1]["matches"] == 0
        assert (await part(emceepee, id=result, grep="(?i)NEEDLE"))[1]["matches"] == 5000
        for wrong in WRONG:
            error = await emceepee.fails("read_result", id=result, **wrong)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS", wrong
        long = preview(await emceepee.execute("a", "one"))["result"]
        whole, following = "", {"lines": [1, 1]}
        while following:
            said, about = await part(emceepee, id=long, **following)
            whole, following = whole + said, about.get("next", {})
        assert whole == "x" * 70_000
        wide = preview(await emceepee.execute("a", "wide"))["result"]
        for start in (0, 1):  # of one of them the room ends within a character
            whole, following = "", {"bytes": [start, 10**9]}
            while following:
                said, about = await part(emceepee, id=wide, **following)
                whole, following = whole + said, about.get("next", {})
            assert whole == ("x" + "ü" * 40_000)[start:]
        # Whoever reads the file may write to it, too.
        said = preview(await emceepee.execute("a", "lines"))
        file = trio.Path(said["file"])
        await file.write_bytes(b"\xff needle \xfe" * 10_000)
        for asked in ({"lines": [1, 2]}, {"bytes": [0, 99]}):
            error = await emceepee.fails("read_result", id=said["result"], **asked)
            assert "altered" in error["message"]
        _, about = await part(emceepee, id=said["result"], grep="needle")
        assert about["matches"] > 0
        await file.write_bytes(b"short")
        said, _ = await part(emceepee, id=said["result"], lines=[4000, 4001])
        assert said == ""


async def test_a_path_leads_into_its_json(connect: Open) -> None:
    async with connect({"a": SERVER}) as emceepee:
        result = preview(await emceepee.execute("a", "rows"))["result"]
        assert (await part(emceepee, id=result, path="/7/name"))[0] == "row 7"
        said, about = await part(emceepee, id=result, path="[?id > `1200`].name")
        assert json.loads(said) == ["row 1201", "row 1202", "row 1203"]
        said, about = await part(emceepee, id=result, path="[].id")
        shown = json.loads(said)
        said, about = await part(emceepee, id=result, path="[*].tags")
        assert len(json.loads(said)) + about["more"] == 1204
        said, rest = await part(emceepee, id=result, **about["next"])
        assert len(json.loads(said)) + rest.get("more", 0) == about["more"]
        assert shown == list(range(len(shown)))
        for path in "/7/nothing", "[", "/x", "\0":
            error = await emceepee.fails("read_result", id=result, path=path)
            assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        said, about = await part(emceepee, id=result, path="nothing")
        assert (said, about["is"]) == ("null", "null")
        assert "an array of 1204" in about["note"]
        text = preview(await emceepee.execute("a", "lines"))["result"]
        error = await emceepee.fails("read_result", id=text, path="/0")
        assert "not JSON" in error["message"]
        assert "use grep" in error["message"]


async def test_a_link_is_a_resource(connect_as_either: Open) -> None:
    async with connect_as_either({"a": SERVER}) as emceepee:
        answer = await emceepee.execute("a", "lines")
        uri = answer.content[1]["uri"]
        (read,) = (await emceepee.request("resources/read", {"uri": uri}))["contents"]
        assert read == {"uri": uri, "mimeType": "text/plain", "text": LINES}
        answer = await emceepee.call("read_resource", server="emceepee", uri=uri)
        assert LINES.startswith(answer.texts[0])
        assert json.loads(answer.texts[1])["next"]
        error = await emceepee.fails("read_result", id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert "no result" in error["message"]


async def test_what_is_evicted_or_expired_says_so(connect: Open) -> None:
    settings = {"results": {"bytes": 400_000, "keep_ms": 1000}}
    async with connect({"a": SERVER}, **settings) as emceepee:
        first, _, third = [preview(await emceepee.execute("a", "lines")) for _ in range(3)]
        error = await emceepee.fails("read_result", id=first["result"], lines=[1, 1])
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert "evicted" in error["message"]
        assert "results.bytes" in error["message"]
        while is_there(first["file"]):
            await emceepee.sent()
        await emceepee.says("set_timer", duration_ms=1100, message="by then it is gone")
        await emceepee.event("timer_expired")
        error = await emceepee.fails("read_result", id=third["result"], lines=[1, 1])
        assert "results.keep_ms" in error["message"]


async def test_of_many_values_the_same_is_kept_as_of_few(connect: Open) -> None:
    rows = [{"id": n, "name": f"row {n}", "tags": ["a", "b"]} for n in range(1204)] * 5
    whole = json.dumps(
        {"rows": rows, "text": LINES}, ensure_ascii=False, separators=(",", ":")
    ).encode()
    async with connect({"a": SERVER}) as emceepee:
        said = preview(await emceepee.execute("a", "values"), 1)
        assert (said["lines"], said["bytes"]) == (1, len(whole))
        assert whole.startswith(said["head"].encode())
        assert whole.endswith(said["tail"].encode())
        assert said["head"].endswith("},")
        shown = len((said["head"] + said["tail"]).encode())
        assert said["omitted"] == {"bytes": len(whole) - shown, "lines": 0}

        async def read(**part: Any) -> str:
            answer = await emceepee.call("read_result", id=said["result"], **part)
            return str(answer.content[0]["text"])

        assert await read(bytes=[250_000, 260_000]) == whole[250_000:260_000].decode()
        assert await read(path="/rows/6019/name") == "row 1203"
        assert (await read(path="/text")).startswith(LINES[:1000])
        assert '"name":"row 1203"' in await read(grep='"name":"row 1203"')


async def test_what_is_long_and_stays_beside_a_preview_is_whole(connect: Open) -> None:
    async with connect({"a": SERVER}, results={"inline_bytes": 1_000_000}) as emceepee:
        answer = await emceepee.execute("a", "all")
        assert preview(answer)["shape"] == "text of 1 line"
        assert len(answer.result["structuredContent"]["rows"]) == 6020
        assert answer.result["_meta"] == {"vendor/long": LINES}


async def test_a_file_has_it_as_long_as_the_session_lives(connect: Open, tmp_path: Path) -> None:
    state = tmp_path / "state" / "emceepee"
    left = state / "results" / "left"
    left.mkdir(parents=True)
    (left / "by a daemon that was killed").write_text("x")
    async with connect({"a": SERVER}) as emceepee:
        assert not left.exists()
        said = preview(await emceepee.execute("a", "lines"))
        check_file(Path(said["file"]), state)
        # What is not so long is in memory.
        assert "file" not in preview(await emceepee.execute("a", "longer"))
        await trio.Path(said["file"]).unlink()
        error = await emceepee.fails("read_result", id=said["result"])
        assert "cannot be read any more" in error["message"]
        preview(await emceepee.execute("a", "lines"))
    assert list((state / "results").iterdir()) == []


async def test_a_daemon_on_loopback_names_the_file_as_well(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"a": SERVER})

    def look(daemon: RemoteDaemon) -> None:
        with RemoteSession.connected(daemon, "one") as client:
            said = client.call("execute_tool", {"server": "a", "tool": "lines"})
            check_file(Path(json.loads(said["content"][0]["text"])["file"]), tmp_path)

    with trio.fail_after(GUARD), serve(tmp_path, "--config", str(config)) as served:
        await trio.to_thread.run_sync(look, RemoteDaemon.find(served.url, tmp_path))


@pytest.mark.parametrize(
    "settings", [{"results": {"inline_bytes": 0}}, {"results": {"inline_bytes": 1_000_000}}, {}]
)
async def test_it_is_off_where_that_is_said(connect: Open, settings: dict[str, Any]) -> None:
    server = SERVER if settings else SERVER | {"results": {"inline_bytes": 0}}
    async with connect({"a": server}, **settings) as emceepee:
        assert (await emceepee.execute("a", "lines")).text == LINES
        answer = await emceepee.execute("a", "both")
        assert len(answer.result["structuredContent"]["rows"]) == 1204
        answer = await emceepee.execute("a", "values")
        if settings.get("results") != {"inline_bytes": 1_000_000}:
            assert len(answer.result["structuredContent"]["rows"]) == 6020
        assert answer.result["structuredContent"]["text"] == LINES
        prompt = await emceepee.says("get_prompt", server="a", name="p")
        assert prompt["messages"][0]["content"]["text"] == LINES
        read = await emceepee.call("read_resource", server="a", uri="x://y")
        assert read.content[0]["resource"]["text"] == LINES


async def test_a_pattern_that_explodes_ends(connect: Open) -> None:
    async with connect({"a": SERVER}) as emceepee:
        result = preview(await emceepee.execute("a", "one"))["result"]
        _, about = await part(emceepee, id=result, grep="(x+x+)+y")
        assert "simpler" in about["note"]
        assert re.match(r"\d", str(about["matches"]))
