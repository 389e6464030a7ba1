"""``emceepee`` without a client: as a command, and as a server on bare pipes.

For what no client would do, and what none sees: exit codes, and every byte of the output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import attrs
import trio

import warm
from emceepee_client import GUARD, Answer, Json, check_log, write_config


def run(*arguments: str | Path, stdin: str = "", **environment: str) -> CompletedProcess[str]:
    """``emceepee`` with these arguments, in an environment of its own."""
    return subprocess.run(
        [*warm.command("emceepee_trio"), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
        timeout=GUARD,
        check=False,
    )


@attrs.define(eq=False)
class Lines:
    """A running ``emceepee stdio`` and its pipes."""

    child: trio.Process
    stderr: Path
    other: list[Json] = attrs.field(factory=list, init=False)
    """Messages that came while something else was waited for."""
    _rest: bytes = attrs.field(default=b"", init=False)

    async def write(self, data: bytes) -> None:
        assert self.child.stdin is not None
        await self.child.stdin.send_all(data)

    async def send(self, *messages: Any) -> None:
        """All of them in one write."""
        await self.write(b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    async def receive(self) -> Json | None:
        """The next message; None at the end."""
        assert self.child.stdout is not None
        while b"\n" not in self._rest:
            chunk = await self.child.stdout.receive_some()
            if not chunk:
                # Only who is killed may leave off in the middle.
                killed = await self.child.wait() == -signal.SIGKILL
                assert killed or not self._rest, "half a line"
                return None
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        message: Json = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def answer(self, request_id: Any) -> Json:
        """The response with that id."""
        while (message := await self.receive()) is not None:
            if "method" not in message and message["id"] == request_id:
                return message
            self.other.append(message)
        raise AssertionError(f"ended before it answered {request_id!r}")

    async def request(self, request_id: Any, method: str, params: Json | None = None) -> Json:
        await self.send(request(request_id, method, params))
        return await self.answer(request_id)

    async def initialize(self) -> Json:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "pipes", "version": "0"},
        }
        answer = await self.request("hello", "initialize", params)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def call(self, request_id: Any, tool: str, /, **arguments: Any) -> Answer:
        said = await self.request(request_id, "tools/call", {"name": tool, "arguments": arguments})
        return Answer.of(said["result"])

    async def execute(
        self, server: str, tool: str, args: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Answer:
        asked = {"server": server, "tool": tool, "args": args or {}, **options}
        return await self.call(f"{server}/{tool}", "execute_tool", **asked)

    async def pid(self, server: str) -> int:
        """Of its process, once it has started."""
        while True:
            status = await self.call(f"status of {server}", "get_server_status", server=server)
            if "process" in status.json:
                return int(status.json["process"]["pid"])
            await self.call("activity", "await_activity")

    async def end(self, how: signal.Signals | None = None) -> int:
        """End its input, or send it a signal; its exit code."""
        if how is None:
            assert self.child.stdin is not None
            await self.child.stdin.aclose()
        else:
            self.child.send_signal(how)
        while (message := await self.receive()) is not None:
            self.other.append(message)
        return await self.child.wait()


def request(request_id: Any, method: str, params: Json | None = None) -> Json:
    whole = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return whole | ({} if params is None else {"params": params})


@asynccontextmanager
async def open_lines(
    folder: Path, servers: Mapping[str, Json] | None = None, **settings: Any
) -> AsyncGenerator[Lines]:
    """The bare pipes of a new ``emceepee stdio``; ended by force if it still runs."""
    config, stderr = write_config(folder, servers or {}, **settings), folder / "stderr.log"
    async with open_pipes(
        stderr, "stdio", "--config", str(config), "--log-level", "debug"
    ) as lines:
        yield lines
    check_log(stderr)


@asynccontextmanager
async def open_pipes(stderr: Path, *words: str, **environment: str) -> AsyncGenerator[Lines]:
    """Those of an ``emceepee`` with these arguments."""
    pipe = subprocess.PIPE
    with trio.fail_after(GUARD), stderr.open("w") as errlog:
        child = await trio.lowlevel.open_process(
            [*warm.command("emceepee_trio"), *words],
            stdin=pipe,
            stdout=pipe,
            stderr=errlog,
            env={**os.environ, **environment},
        )
        lines = Lines(child, stderr)
        try:
            yield lines
            if child.returncode is None:
                await lines.end()
        finally:
            if child.returncode is None:
                child.terminate()  # so that its children end as well
                with trio.CancelScope(shield=True):
                    await child.wait()
            for end in (child.stdin, child.stdout):
                if end is not None:
                    with trio.CancelScope(shield=True):
                        await end.aclose()
