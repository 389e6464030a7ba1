"""The same as `on_trio.py`, on uvicorn: `python on_uvicorn.py PORT PROGRAM …`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import uvicorn


async def serve(port: int, command: list[str]) -> None:
    pipe = subprocess.PIPE
    program = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    sink, source = program.stdin, program.stdout
    assert sink is not None
    assert source is not None
    waiting, last = dict[int, asyncio.Future[dict[str, Any]]](), 0

    async def read() -> None:
        while line := await source.readline():
            answer = json.loads(line)
            waiting.pop(answer["id"]).set_result(answer)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal last
        chunks, more = [], True
        while more:
            message = await receive()
            chunks.append(message.get("body", b""))
            more = message.get("more_body", False)
        asked = json.loads(b"".join(chunks))
        status, body = 202, b""
        if "id" in asked:
            last += 1
            waiting[last] = slot = asyncio.get_running_loop().create_future()
            sink.write(json.dumps({**asked, "id": last}).encode() + b"\n")
            status, body = 200, json.dumps({**await slot, "id": asked["id"]}).encode()
        else:
            sink.write(json.dumps(asked).encode() + b"\n")
        length = (b"content-length", b"%d" % len(body))
        headers = [(b"content-type", b"application/json"), length]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    reading = asyncio.create_task(read())
    config = uvicorn.Config(app, port=port, lifespan="off", log_level="error", access_log=False)
    await uvicorn.Server(config).serve()
    reading.cancel()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2:]))
