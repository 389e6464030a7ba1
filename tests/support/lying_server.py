"""The raw server, with tools that break the protocol itself in the middle of a call.

It also takes the flags of ``raw_server.py``.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading

import raw_server
from raw_server import Call, send, text, tool, write, writing


@tool
def half(call: Call) -> object:
    """Half of its answer, and nothing of anything ever again."""
    writing.acquire()
    line = json.dumps(call.response(text("whole"))).encode()
    os.write(1, line[: len(line) // 2])
    call.marker("half written")
    threading.Event().wait()
    return None


@tool
def wrong_ids(call: Call) -> object:
    """Answers to nobody, and to somebody else, before its own."""
    others: list[object] = [0, -1, 10**30, "one", call.id + 1, None, 1.5, True, [], {}]
    for request_id in others:
        send({"jsonrpc": "2.0", "id": request_id, "result": text("not yours")})
        error = {"code": -32603, "message": "not yours"}
        send({"jsonrpc": "2.0", "id": request_id, "error": error})
    return text("yours")


@tool
def twice(call: Call) -> object:
    """The same answer again, another one, and an error."""
    for said in ("first", "first", "second"):
        send(call.response(text(said)))
    error = {"code": -32603, "message": "third"}
    send({"jsonrpc": "2.0", "id": call.id, "error": error})
    return None


@tool
def not_json(call: Call) -> object:
    """Instead of an answer, which it promises to nobody any more."""
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [}}\n' % call.id)
    call.marker("not JSON written")
    return None


@tool
def verbatim(call: Call) -> object:
    """A line as it is given, with the id of the call for ID, and ``many`` ``times`` for MANY."""
    line = call.get("line", "").replace("ID", str(call.id))
    write(
        line.replace("MANY", call.get("many", "") * call.get("times", 1)).encode("latin-1") + b"\n"
    )
    return None


@tool
def endless(call: Call) -> object:
    """A line without an end."""
    while True:
        write(b"x" * 65536)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        raw_server.main()
