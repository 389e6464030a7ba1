"""Lines on standard input: in pieces, in lists, too long, and what is no message at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio

import warm
from emceepee_client import write_config
from emceepee_lines import open_lines, request
from fake_backends import raw

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602


async def test_requests_may_come_in_any_pieces(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        await lines.initialize()
        for end in (b"\n", b"\r\n", b" \n\n\n"):
            line = json.dumps(request("pieces", "ping")).encode() + end
            for start in range(0, len(line), 7):
                await lines.write(line[start : start + 7])
                await trio.sleep(0.001)  # so that the reader wakes in between
            assert (await lines.answer("pieces"))["result"] == {}
        await lines.send(*(request(n, "ping") for n in range(500)))
        assert sorted([(await lines.receive() or {})["id"] for _ in range(500)]) == list(range(500))


async def test_input_may_be_a_file_which_is_always_ready(tmp_path: Path) -> None:
    asked = tmp_path / "requests"
    asked.write_text(json.dumps(request("from a file", "ping")) + "\n", "utf-8")
    command = [*warm.command("emceepee_trio"), "stdio", "--config"]
    command.append(str(write_config(tmp_path, {})))
    for source, answers in ((asked, 1), (Path("/dev/null"), 0)):
        with source.open("rb") as file:
            child = await trio.run_process(command, stdin=file, capture_stdout=True)
        lines = child.stdout.splitlines()
        assert [json.loads(line)["id"] for line in lines] == ["from a file"] * answers


NONSENSE: list[tuple[bytes, Any, int]] = [
    (b"hello", None, PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', None, PARSE_ERROR),
    (b"\xff\xfe\x00", None, PARSE_ERROR),
    (b'"\xc3\x28"', None, PARSE_ERROR),
    (b"[" * 100_000, None, PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', None, PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": 1e999}}', None, PARSE_ERROR),
    (b"7", None, INVALID_REQUEST),
    (b'"ping"', None, INVALID_REQUEST),
    (b"null", None, INVALID_REQUEST),
    (b"[]", None, INVALID_REQUEST),
    (b"{}", None, INVALID_REQUEST),
    (b'{"id": 1, "method": "ping"}', 1, INVALID_REQUEST),
    (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', "a", INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 2, "method": 7}', 2, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 3, "method": "ping", "params": [1]}', 3, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": [], "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None, INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 4, "method": "no/such"}', 4, -32601),
    (b'{"jsonrpc": "2.0", "id": 5, "method": "tools/call"}', 5, INVALID_PARAMS),
    (b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {}}', 6, INVALID_PARAMS),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "resources/read"}', 7, INVALID_PARAMS),
]


async def test_every_kind_of_nonsense_gets_an_error_and_the_session_goes_on(
    tmp_path: Path,
) -> None:
    async with open_lines(tmp_path, {"raw": raw()}) as lines:
        await lines.initialize()
        task = (await lines.execute("raw", "never", timeout_ms=0)).task_id
        for line, request_id, code in NONSENSE:
            await lines.write(line + b"\n")
            answer = await lines.receive()
            assert answer is not None
            assert (answer["id"], answer["error"]["code"]) == (request_id, code), line
            assert answer["error"]["message"]
        (left,) = (await lines.call("tasks", "list_tasks")).json["tasks"]
        assert left["task_id"] == task


UNANSWERED = [
    b"",
    b"   \t",
    b'{"jsonrpc": "2.0", "method": "no/such/notification"}',
    b'{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1}}',
    b'{"jsonrpc": "2.0", "method": 5}',
    b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
    b'{"jsonrpc": "2.0", "id": "no-such-request", "result": {"action": "accept"}}',
    b'{"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "m"}}',
]


async def test_what_needs_no_answer_gets_none(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        await lines.initialize()
        for n, line in enumerate(UNANSWERED):
            await lines.write(line + b"\n")
            await lines.send(request(n, "ping"))
            assert await lines.receive() == {"jsonrpc": "2.0", "id": n, "result": {}}, line


async def test_a_request_before_the_handshake_is_refused(tmp_path: Path) -> None:
    async with open_lines(tmp_path) as lines:
        early = await lines.request(1, "tools/list")
        assert early["error"]["code"] == INVALID_PARAMS
        assert "result" in await lines.initialize()
        assert "result" in await lines.request(2, "tools/list")


async def test_a_list_of_messages_is_taken_apart(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"raw": raw()}) as lines:
        await lines.initialize()
        call = {"name": "list_timers", "arguments": {}}
        await lines.send(
            [
                request(1, "ping"),
                {"jsonrpc": "2.0", "method": "notifications/whatever"},
                7,
                request("two", "tools/call", call),
                {"id": 3, "method": "ping"},
                [request(4, "ping")],
                request(5, "ping"),
            ]
        )
        answers = [await lines.receive() or {} for _ in range(6)]
        assert {a["id"] for a in answers if "result" in a} == {1, "two", 5}
        refused = [(a["id"], a["error"]["code"]) for a in answers if "error" in a]
        assert sorted(refused, key=str) == [
            (3, INVALID_REQUEST),
            (None, INVALID_REQUEST),
            (None, INVALID_REQUEST),
        ]


LIMIT = 10_000


def padded(size: int, start: str, end: str) -> bytes:
    text = f'{start}"method": "ping", "params": {{"x": "{{}}"}}{end}'
    return text.replace("{}", "x" * (size - len(text) + 2), 1).encode()


async def test_a_message_that_is_too_long_is_refused_by_its_id(tmp_path: Path) -> None:
    """Wherever known clients write the id; the text in between is nobody's id."""
    first = '{"jsonrpc": "2.0", "id": 1, '
    last = ', "jsonrpc": "2.0", "id": "b-2"}'
    too_long = "message too long (limits.body 10000 bytes)"
    async with open_lines(tmp_path, limits={"body": LIMIT}) as lines:
        await lines.initialize()
        fitting = padded(LIMIT, first, "}")
        assert len(fitting) == LIMIT
        await lines.write(fitting + b"\n")
        assert (await lines.receive() or {})["id"] == 1
        for size in (LIMIT + 1, 70_000, 1_000_000):
            for line, request_id in (
                (padded(size, first, "}"), 1),
                (padded(size, '{"id":"a",', "}"), "a"),
                (padded(size, "{", last), "b-2"),
                (padded(size, "{", "}"), None),
                (padded(size, '{"id":007,', "}"), None),
                (b'{"method": "x", "params": {"id": 5, "y": "' + b"z" * size + b'"}}', None),
                (b'{"y": "' + b"z" * size + b'\\"id": 5}', None),
            ):
                assert len(line) >= size
                await lines.write(line + b"\n")
                answer = await lines.receive()
                assert answer == {
                    "jsonrpc": "2.0",
                    "id": request_id,
                    "error": {"code": INVALID_REQUEST, "message": too_long},
                }
        assert (await lines.request(9, "ping"))["result"] == {}
