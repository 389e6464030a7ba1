"""The least that trio can do: a POST in, a line to the program, its answer, a response.

It knows no sessions and no eras, and checks nothing: `python on_trio.py PORT PROGRAM …`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httptools
import trio

HEAD = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Slot:
    """A request that the program has not answered yet."""

    def __init__(self) -> None:
        self.is_answered = trio.Event()
        self.answer: dict[str, Any] = {}


class Heard:
    """What llhttp has found."""

    def __init__(self) -> None:
        self.body: list[bytes] = []
        self.is_whole = False

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        self.is_whole = True


async def serve(port: int, command: list[str]) -> None:
    pipe = subprocess.PIPE
    program = await trio.lowlevel.open_process(command, stdin=pipe, stdout=pipe)
    sink, source = program.stdin, program.stdout
    assert sink is not None
    assert source is not None
    writing, waiting, last = trio.Lock(), dict[int, Slot](), 0

    async def tell(message: dict[str, Any]) -> None:
        async with writing:
            await sink.send_all(json.dumps(message).encode() + b"\n")

    async def read() -> None:
        kept = b""
        async for chunk in source:
            *lines, kept = (kept + chunk).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                slot = waiting.pop(answer["id"])
                slot.answer = answer
                slot.is_answered.set()

    async def answer(asked: dict[str, Any]) -> bytes:
        nonlocal last
        if "id" not in asked:
            await tell(asked)
            return HEAD % (202, 0)
        last += 1
        waiting[last] = slot = Slot()
        await tell({**asked, "id": last})
        await slot.is_answered.wait()
        body = json.dumps({**slot.answer, "id": asked["id"]}).encode()
        return HEAD % (200, len(body)) + body

    async def connection(stream: trio.SocketStream) -> None:
        heard = Heard()
        parser = httptools.HttpRequestParser(heard)
        async for data in stream:
            parser.feed_data(bytes(data))
            if heard.is_whole:
                asked = json.loads(b"".join(heard.body))
                heard.body, heard.is_whole = [], False
                await stream.send_all(await answer(asked))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        nursery.start_soon(trio.serve_tcp, connection, port)


if __name__ == "__main__":
    trio.run(serve, int(sys.argv[1]), sys.argv[2:])
