"""What a long answer costs while it is taken and kept: the message, once."""

from __future__ import annotations

import gc
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from emceepee_trio.backend.http.event_stream import EventStream
from emceepee_trio.config import Config, Server
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from play import coded

pytestmark = pytest.mark.once

KIB, MIB = 1024, 1024 * 1024
GROWING = 9 / 8
"""What grows has room for this many times what is in it; nothing is there of that."""
BESIDE = 128 * KIB
"""Bytes: all else that is allocated meanwhile, by us and by the tests."""

SERVER = """\
MIB = 1024 * 1024
LINE = "2026-01-01T00:00:00Z worker 7: a line of a log\\n"
ROWS = [{"id": n, "name": f"row {n}"} for n in range(100_000)]
WAYS = {
    "short": {"content": [text("x" * 40_000)]},
    "lines": {"content": [text(LINE * (8 * MIB // len(LINE)))]},
    "an emoji in Latin": {"content": [text("🦑" + "all else is Latin. " * (8 * MIB // 19))]},
    "JSON": {"content": [text(json.dumps(ROWS))]},
    "values": {"content": [], "structuredContent": {"rows": ROWS, "ways": {"a": ROWS[:9]}}},
    "a list of values": {"structuredContent": [[{"a": 1, "b": [None]}] * 200] * 1000},
    "image": {"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA" * 2 * MIB}]},
}

def spelled(result):
    said = {"jsonrpc": "2.0", "id": "@ID@", "result": result}
    return json.dumps(said, ensure_ascii=False).encode()

lines = {f"tools/call {name}": [spelled(result)] for name, result in WAYS.items()}
perform(Play(lines, results=results_of(WAYS)))
"""


@pytest.mark.parametrize(
    "kind", ["lines", "an emoji in Latin", "JSON", "image", "values", "a list of values"]
)
async def test_a_long_answer_is_there_once_and_then_no_more(tmp_path: Path, kind: str) -> None:
    entry = coded(SERVER)
    server = Server("a", command=entry["command"], args=tuple(entry["args"]))
    async with open_sessions(Config(servers=(server,)), tmp_path) as manager:
        session = await manager.ensure("one", "p")

        async def call(tool: str) -> Any:
            asked = {"server": "a", "tool": tool}
            reply = await TOOLBOX.get("execute_tool").call(Request(session, manager), asked)
            return json.loads(reply.result["content"][0]["text"])

        await call("short")
        gc.collect()
        tracemalloc.start()
        try:
            said = await call(kind)
            left, highest = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        kept = session.results.get(said["result"])
        message = kept.size
        if kind == "image":
            message = message * 4 // 3
        elif kind == "JSON":
            message = len(json.dumps(kept.read(0, kept.size).decode()))
        elif "values" in kind:
            message = len(json.dumps(json.loads(kept.read(0, kept.size))))
        elif kind == "lines":
            message += kept.lines
        assert message > 3 * MIB
        assert highest < GROWING * message + BESIDE
        assert left < BESIDE


def test_an_event_is_not_copied_when_it_is_complete() -> None:
    stream, chunk = EventStream(16 * MIB), b"x" * 64 * KIB
    tracemalloc.start()
    try:
        for _ in stream.feed(b"data: "):
            pass
        for _ in range(128):
            assert list(stream.feed(chunk)) == []
        (event,) = stream.feed(b"\n\n")
        _, highest = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert event is not None
    assert len(event.data) == 8 * MIB
    assert highest < GROWING * 8 * MIB + BESIDE
