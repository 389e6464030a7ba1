"""Servers that do whatever a server should not, chosen call by call; for the soak.

``python evil.py`` is a program on stdin and stdout, ``python evil.py PORT`` listens: on ``/mcp``
and, with the transport of old, on ``/sse``. What a tool call gets is named by its argument ``how``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

ID = b"@ID@"
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {}, "logging": {}}
TOOLS = [{"name": "do", "inputSchema": {"type": "object"}}]


def answer(result: bytes) -> bytes:
    return b'{"jsonrpc": "2.0", "id": @ID@, "result": {"content": [], "x": %s}}' % result


def note(data: bytes) -> bytes:
    said = b'{"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": %s}}'
    return said % data


def form(schema: bytes) -> bytes:
    said = b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":%s}}'
    return said % schema


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


RIGHT = answer(b"1")
SAID: dict[str, list[bytes]] = {
    "deep": [note(deep(150)), note(deep(980)), form(deep(979)), answer(deep(981))],
    "deepest": [note(deep(100_000)), answer(deep(100_000))],
    "large": [note(b"1" + b"0" * 400), answer(b"9" * 5000)],
    "many": [note(b"[" + b"{}," * 300_000 + b"1]"), answer(b"[" + b"[]," * 300_000 + b"1]")],
    "long": [note(b'"' + b"x" * 1_000_000 + b'"'), answer(b'"' + b"x" * 3_000_000 + b'"')],
    "too long": [answer(b'"' + b"x" * 20_000_000 + b'"')],
    "not text": [note(b'"\xe9\xff"'), answer(b'"\xe9t\xe9"')],
    "ids": [
        RIGHT.replace(ID, other)
        for other in (b"0", b"null", b'"@ID@"', b"1e999", b"[]", b"-1", b'"x"', b"9" * 400)
    ]
    + [RIGHT.replace(ID, ID + b".0")],
    "flood": [b"y"] * 100_000 + [b"{}"] * 50_000 + [RIGHT],
    "news": [note(b'"x"')] * 5000 + [RIGHT],
    "changes": [b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'] * 2000 + [RIGHT],
    "questions": [form(b'"?"').replace(b'"q"', b'"q%d"' % n) for n in range(300)] + [RIGHT],
    "cut": [RIGHT[:40]],
    "nothing": [],
}
"""What is said, in lines."""
ALL = [*SAID, "drip", "crash", "complain", "cookies", "hang up"]
"""What can be asked for; not everything is for everybody, who then answers as it should."""


def result_of(method: str) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "evil", "version": "0"}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": CAPABILITIES,
                "serverInfo": info,
            }
        case "tools/list":
            return {"tools": TOOLS, "ttlMs": 100}
        case "resources/list":
            return {"resources": []}
        case "ping":
            return {}
    return None


def honest(message: dict[str, Any]) -> bytes:
    result = result_of(message["method"])
    said = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}).encode()


def how_of(message: dict[str, Any]) -> str | None:
    if message.get("method") != "tools/call":
        return None
    return str((message["params"].get("arguments") or {}).get("how"))


def lines_for(message: dict[str, Any], how: str) -> list[bytes]:
    request_id = json.dumps(message["id"]).encode()
    return [line.replace(ID, request_id) for line in SAID.get(how, [RIGHT])]


# -- a program -----------------------------------------------------------------------------------


def write(data: bytes, to: int = 1) -> None:
    while data:
        data = data[os.write(to, data) :]


def serve_stdio() -> None:
    for received in sys.stdin.buffer:
        message = json.loads(received)
        if "method" not in message or "id" not in message:
            continue
        how = how_of(message)
        if how is None:
            write(honest(message) + b"\n")
            continue
        if how == "crash":
            write(b"goodbye\n" * 5000, 2)
            os._exit(1)
        if how == "complain":
            write(b"y\n" * 200_000 + b"x" * 200_000 + b"\n", 2)
        for line in lines_for(message, how):
            if how == "drip":
                for byte in line:
                    write(bytes([byte]))
                    time.sleep(0.001)
            write((b"" if how == "drip" else line) + b"\n")


# -- a listener ----------------------------------------------------------------------------------


def serve_http(port: int) -> None:
    import trio  # noqa: PLC0415 - a program starts without it

    from http_server import GONE, HttpServer, Reply, Request  # noqa: PLC0415 - as above

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.verb == "GET" and not request.path.startswith("/sse"):
            await reply.events()
            await reply.data(b"retry: 0\nid: 1\ndata:\n\n")
            await reply.end()
            return True
        message = request.message if request.verb == "POST" else {}
        how = how_of(message)
        if how is None or "id" not in message:
            return False
        if how == "crash":
            os._exit(1)
        lines = lines_for(message, how)
        if request.path.startswith("/messages"):
            await reply.whole(202)
            for line in lines:
                await server.listeners[-1].data(b"data: " + line + b"\n\n")
            return True
        cookies = {"set_cookie": f"c{time.time_ns()}=" + "x" * 3000}
        if how in {"cookies", "ids", "deep", "large", "not text"}:
            # One of them, and as JSON: the others are only for streams.
            await reply.whole(200, lines[-1], "application/json", **cookies)
            return True
        await reply.start(200, "text/event-stream", **cookies)
        for n, line in enumerate(lines):
            whole = b"retry: 0\nid: %d\ndata: " % n + line + b"\n\n"
            step = 10 if how == "drip" else len(whole)
            for start in range(0, len(whole), step):
                await reply.data(whole[start : start + step])
                if how == "drip":
                    await trio.sleep(0.01)
            if how == "hang up":
                await reply.hang_up()
                return True
        await reply.end()
        return True

    async def spoiled(request: Request, reply: Reply) -> bool:
        try:
            return await spoil(request, reply)
        except GONE:
            return True

    server = HttpServer(spoil=spoiled, port=port)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            sys.stdout.write("ready\n")
            sys.stdout.flush()

    trio.run(main)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve_http(int(sys.argv[1]))
    else:
        serve_stdio()
