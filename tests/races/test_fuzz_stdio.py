"""Whatever stands on a line of standard input: an answer that is one, or none, and the next line
is read as if nothing had been.

The front in this process, on pipes, with scripted backends; and a real `emceepee stdio`.
"""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from asgi_client import DONE, request, stamp
from emceepee_client import COMMAND, check_log, write_config
from emceepee_trio.config import Config, Limits, Policy, Server
from emceepee_trio.front.pipes.stdio import serve_stdio
from fake_backends import raw
from memory_peers import scripted
from messages import BATCH, HANDSHAKE, INITIALIZE, STAMPED
from mistakes import MORE, SMALL, bodies
from watching import check_message, ids_in, no_bugs, strict

GUARD = 60
CONFIG = Config(
    servers=(Server("good", command="/nowhere"), Server("bad", command="/nowhere")),
    limits=Limits(body=SMALL, message=SMALL),
    policy=Policy(spawn="allow"),
)
ECHO = {"server": "good", "tool": "echo", "args": {"text": "mine"}}
DISCOVER = request("hello", "server/discover", _meta=stamp())

lines = st.lists(bodies(st.sampled_from([*HANDSHAKE, *BATCH, *STAMPED])), min_size=1, max_size=6)


@attrs.define(eq=False)
class Dialogue:
    """What was said on either side."""

    meta: dict[str, Any]
    """What every request of this era carries."""
    ids: list[Any] = attrs.field(factory=list, repr=False)
    """That answers may have."""
    numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def question(self) -> tuple[str, bytes]:
        """A call that has to work whatever was said before, and its id."""
        key = f"check {next(self.numbers)}"
        params = {"name": "execute_tool", "arguments": ECHO} | self.meta
        return key, self.said(request(key, "tools/call", **params))

    def said(self, message: Any) -> bytes:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.ids += ids_in(line)
        return line + b"\n"

    def is_answer(self, line: bytes, key: str | None, *, works: bool = True) -> bool:
        """Whether the line that came is the answer that is waited for; every line is checked."""
        message = check_message(strict(line), self.ids)
        if "method" in message or message["id"] != key or key is None:
            return False
        if works:
            assert message["result"]["content"][0]["text"] in {"mine", '{"text": "mine"}'}
        return True


# -- in this process -----------------------------------------------------------------------------


@attrs.define(eq=False)
class Pipes:
    dialogue: Dialogue
    _stdin: trio.lowlevel.FdStream
    _stdout: trio.lowlevel.FdStream
    _rest: bytes = b""

    async def say(self, message: Any) -> None:
        await self._stdin.send_all(self.dialogue.said(message))

    async def ask(self) -> None:
        key, line = self.dialogue.question()
        await self._stdin.send_all(line)
        await self.hear(key)

    async def hear(self, key: str | None = None, *, works: bool = True) -> None:
        """Up to the answer with that id, or to the end."""
        while True:
            while b"\n" not in self._rest:
                if not (chunk := await self._stdout.receive_some()):
                    assert key is None, "the end instead of an answer"
                    assert not self._rest
                    return
                self._rest += chunk
            line, _, self._rest = self._rest.partition(b"\n")
            if self.dialogue.is_answer(line, key, works=works):
                return

    async def end(self) -> None:
        await self._stdin.aclose()
        await self.hear()


@contextmanager
def standard(stdin: int, stdout: int) -> Generator[None]:
    """These pipes in the place of ours."""
    with (
        os.fdopen(stdin) as reads,
        os.fdopen(stdout, "w") as writes,
        mock.patch.object(sys, "stdin", reads),
        mock.patch.object(sys, "stdout", writes),
    ):
        yield


@asynccontextmanager
async def open_front(dialogue: Dialogue) -> AsyncGenerator[Pipes]:
    """The front on pipes; what it writes is read to the end."""
    (stdin, ours_in), (ours_out, stdout) = os.pipe(), os.pipe()
    pipes = Pipes(dialogue, trio.lowlevel.FdStream(ours_in), trio.lowlevel.FdStream(ours_out))

    async def serve() -> None:
        with standard(stdin, stdout):
            assert await serve_stdio(CONFIG)

    with no_bugs(), scripted(), trio.fail_after(GUARD):
        async with pipes._stdin, pipes._stdout, trio.open_nursery() as nursery:
            nursery.start_soon(serve)  # noqa: ASYNC113 - what is said to it waits in the pipe
            yield pipes
            await pipes.end()


def fuzz(said: list[bytes], hello: list[Any], meta: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with open_front(Dialogue(meta)) as pipes:
            for message in hello:
                await pipes.say(message)
            await pipes.ask()
            for line in said:
                await pipes.say(line)
                await pipes.ask()

    trio.run(scenario)


@MORE
@given(lines)
def test_any_line_after_a_handshake(said: list[bytes]) -> None:
    fuzz(said, [INITIALIZE, DONE], {})


@MORE
@given(lines)
def test_any_line_of_the_modern_era(said: list[bytes]) -> None:
    fuzz(said, [DISCOVER], {"_meta": stamp()})


@given(lines)
def test_any_line_before_anything_else(said: list[bytes]) -> None:
    """Whichever era it was that they began, a question of one of them is answered."""

    async def scenario() -> None:
        dialogue = Dialogue({})
        async with open_front(dialogue) as pipes:
            for line in said:
                await pipes.say(line)
            for message in (INITIALIZE | {"id": "hello"}, DONE):
                await pipes.say(message)
            await pipes.hear("hello", works=False)

    trio.run(scenario)


# -- a real one ----------------------------------------------------------------------------------


@attrs.define(eq=False)
class Child:
    process: subprocess.Popen[bytes]
    dialogue: Dialogue
    _lines: queue.SimpleQueue[bytes] = attrs.field(factory=queue.SimpleQueue)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def say(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(self.dialogue.said(message))
        self.process.stdin.flush()

    def ask(self) -> None:
        assert self.process.stdin is not None
        key, line = self.dialogue.question()
        self.process.stdin.write(line)
        self.process.stdin.flush()
        while not self.dialogue.is_answer(self._lines.get(timeout=GUARD), key):
            pass


@contextmanager
def open_child(folder: Path) -> Generator[Child]:
    servers = {"good": raw(), "bad": raw()}
    settings = {"limits": {"body": SMALL}, "policy": {"spawn": "deny"}}
    config, stderr = write_config(folder, servers, **settings), folder / "stderr.log"
    pipe = subprocess.PIPE
    with stderr.open("wb") as errors:
        process = subprocess.Popen(
            [*COMMAND, "stdio", "--config", str(config)], stdin=pipe, stdout=pipe, stderr=errors
        )
        with process:
            child = Child(process, Dialogue({}))
            reader = threading.Thread(target=child.read)
            reader.start()
            try:
                for message in (INITIALIZE, DONE):
                    child.say(message)
                yield child
            finally:
                assert process.stdin is not None
                process.stdin.close()
                try:
                    assert process.wait(GUARD) == 0
                finally:
                    process.kill()
                    reader.join()
    check_log(stderr)


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Generator[Child]:
    with open_child(tmp_path_factory.mktemp("fuzz")) as child:
        yield child


@given(said=lines)
def test_any_line_to_a_process(child: Child, said: list[bytes]) -> None:
    child.ask()
    for line in said:
        child.say(line)
        child.ask()
