"""A real ``emceepee stdio``, and clients that drive it from the outside.

:func:`open_emceepee` puts the SDK's client in front of it; what comes back is shown as it came,
not as the SDK's models would have it. :func:`open_lines` gives the bare pipes, for what no
client would do. Whoever leaves either finds that its stderr was log lines, and its stdout messages.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Literal

import attrs
import trio
import trio.testing
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation

Json = dict[str, Any]
Era = Literal["handshake", "modern"]
MODERN = "2026-07-28"

GUARD = 60.0
"""Seconds after which a test hangs; nothing takes a fraction of it."""

COMMAND = (sys.executable, "-m", "emceepee_trio")
CLIENT = Implementation(name="tests", version="0")


# -- what is equal to a value that cannot be known ------------------------------------------------


@attrs.frozen(eq=False, repr=False)
class Like:
    """Equal to every string that its pattern matches as a whole."""

    pattern: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(self.pattern, other, re.DOTALL) is not None

    def __hash__(self) -> int:
        return hash(self.pattern)

    def __repr__(self) -> str:
        return f"Like({self.pattern!r})"


@attrs.frozen(eq=False)
class Between:
    """Equal to every number in there."""

    low: float
    high: float = math.inf

    def __eq__(self, other: object) -> bool:
        number = isinstance(other, int | float) and not isinstance(other, bool)
        return number and self.low <= other <= self.high  # type: ignore[operator]

    def __hash__(self) -> int:
        return hash((self.low, self.high))


ULID = Like("[0-9A-HJKMNP-TV-Z]{26}")
TIMESTAMP = Like(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
PID = Between(2)


# -- a configuration ------------------------------------------------------------------------------


def write_config(folder: Path, servers: Mapping[str, Json], **settings: Any) -> Path:
    path = folder / "emceepee.json"
    path.write_text(json.dumps({"mcpServers": servers, **settings}), "utf-8")
    return path


def log_lines(stderr: Path) -> list[Json]:
    """What was logged; fails if anything else was written there."""
    lines = [json.loads(line) for line in stderr.read_text("utf-8").splitlines()]
    assert all({"level", "event", "timestamp"} <= line.keys() for line in lines)
    return lines


def check_log(stderr: Path) -> None:
    assert not [line for line in log_lines(stderr) if "traceback" in line]


# -- a command that ends by itself ----------------------------------------------------------------


def run(*arguments: str | Path, stdin: str = "", **environment: str) -> CompletedProcess[str]:
    """``emceepee`` with these arguments, in an environment of its own."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environment},
        timeout=GUARD,
        check=False,
    )


# -- an answer ------------------------------------------------------------------------------------


def _context(block: Json, key: str) -> Any:
    """The object in a text block that has this key, if it is one."""
    try:
        said = json.loads(block["text"]) if block.get("type") == "text" else None
    except ValueError:
        return None
    return said if isinstance(said, dict) and key in said else None


@attrs.frozen
class Answer:
    """The result of one tools/call: the tool's own content, and the context blocks behind it."""

    result: Json
    content: Sequence[Json]
    news: Json
    """The block of events, empty if there is none."""
    pending: Json
    """What is in ``pending_client_action``, empty if there is none."""

    @classmethod
    def of(cls, result: Json) -> Answer:
        given = result.get("content")
        content = list(given) if isinstance(given, list) else []
        pending, news = {}, {}
        if content and (said := _context(content[-1], "pending_client_action")):
            content.pop()
            assert list(said) == ["pending_client_action"]
            pending = said["pending_client_action"]
        if content and (said := _context(content[-1], "events_since_last_response")):
            content.pop()
            assert said.keys() <= {"events_since_last_response", "more", "events_lost"}
            news = said
        return cls(result, content, news, pending)

    @property
    def events(self) -> list[Json]:
        found: list[Json] = self.news.get("events_since_last_response", [])
        return found

    @property
    def texts(self) -> list[str]:
        return [block["text"] for block in self.content]

    @property
    def text(self) -> str:
        (text,) = self.texts
        return text

    @property
    def json(self) -> Any:
        """What a tool of ours says, if it worked."""
        assert self.result["isError"] is False, self.texts
        return json.loads(self.text)

    @property
    def error(self) -> Json:
        """What a tool of ours says, if it did not."""
        assert self.result["isError"] is True, self.texts
        said = json.loads(self.text)
        assert list(said) == ["error"]
        error: Json = said["error"]
        assert error.keys() - {"details"} == {"code", "message"}
        return error

    @property
    def task_id(self) -> str:
        """Of the task that the call has become."""
        _, shown = self.texts
        return str(json.loads(shown)["proxy_task"]["task_id"])


# -- the SDK's client -----------------------------------------------------------------------------


@attrs.define(eq=False)
class Emceepee:
    """A client that has connected. Remembers every event it was given."""

    client: Client
    era: Era
    stderr: Path
    events: list[Json] = attrs.field(factory=list, init=False)

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Any
    ) -> Json:
        """The raw result. *options* are those of the SDK's dispatcher."""
        call: CallOptions = {**options}  # type: ignore[typeddict-item]
        data: Json = {"method": method, "params": dict(params or {})}
        # What the SDK's session does, without its models: they would sieve the result.
        self.client.session._stamp(data, call)
        return await self.client.session._dispatcher.send_raw_request(method, data["params"], call)

    async def call(self, tool: str, /, **arguments: Any) -> Answer:
        return await self.call_with({}, tool, arguments)

    async def call_with(self, options: Json, tool: str, arguments: Mapping[str, Any]) -> Answer:
        params = {"name": tool, "arguments": arguments}
        result = await self.request("tools/call", params, **options)
        answer = Answer.of(result)
        self.events += answer.events
        if tool == "await_activity" and not result.get("isError"):
            for group in answer.json["events"]:
                self.events += group["events"]
        return answer

    async def says(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool of ours answers."""
        return (await self.call(tool, **arguments)).json

    async def fails(self, tool: str, /, **arguments: Any) -> Json:
        """The error it answers instead."""
        return (await self.call(tool, **arguments)).error

    async def execute(
        self, server: str, tool: str, args: Mapping[str, Any] | None = None, /, **options: Any
    ) -> Answer:
        return await self.call("execute_tool", server=server, tool=tool, args=args or {}, **options)

    async def start_task(
        self, server: str, tool: str, args: Mapping[str, Any] | None = None, /, **options: Any
    ) -> str:
        """Its id."""
        return (await self.execute(server, tool, args, timeout_ms=0, **options)).task_id

    async def event(self, kind: str, **data: Any) -> Json:
        """The first event of that type whose data has at least this, waiting for it."""
        while True:
            for event in self.events:
                if event["type"] == kind and all(event["data"].get(k) == data[k] for k in data):
                    return event
            await self.call("await_activity")

    async def connected(self, *servers: str) -> None:
        for server in servers:
            await self.event("server_connected", name=server)

    async def task_over(self, task_id: str) -> Json:
        """Its final state."""
        while True:
            task: Json = (await self.says("get_task", task_id=task_id))["task"]
            if task["status"] != "working":
                return task
            await self.call("await_activity")

    async def question(self) -> Json:
        """The only open one, as get_elicitations or get_sampling_requests lists it."""
        while True:
            found: list[Json] = [
                *(await self.says("get_elicitations"))["elicitations"],
                *(await self.says("get_sampling_requests"))["sampling_requests"],
            ]
            if found:
                (one,) = found
                return one
            await self.call("await_activity")

    async def sent(self) -> None:
        """What other tasks were about to send has been taken up."""
        await trio.testing.wait_all_tasks_blocked()
        await self.request("resources/list")

    async def status(self, server: str) -> Json:
        said: Json = await self.says("get_server_status", server=server)
        return said

    async def pid(self, server: str) -> int:
        await self.event("process_started", name=server)
        return int((await self.status(server))["process"]["pid"])


@contextmanager
def _plainly() -> Generator[None]:
    """What went wrong, without the groups that the nurseries around the client wrap it in."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None  # noqa: ASYNC123 - a test reads the bare error


@asynccontextmanager
async def open_emceepee(
    folder: Path,
    servers: Mapping[str, Json] | None = None,
    *,
    era: Era = "handshake",
    **settings: Any,
) -> AsyncGenerator[Emceepee]:
    """A client of a new ``emceepee stdio`` with these servers and settings."""
    config = write_config(folder, servers or {}, **settings)
    stderr = folder / "stderr.log"
    command, *args = *COMMAND, "stdio", "--config", str(config), "--log-level", "debug"
    garbled: list[Exception] = []

    async def hear(message: object) -> None:
        if isinstance(message, Exception):
            garbled.append(message)

    with trio.fail_after(GUARD), stderr.open("w") as errlog, _plainly():
        transport = stdio_client(StdioServerParameters(command=command, args=args), errlog=errlog)
        mode = "legacy" if era == "handshake" else "auto"
        async with Client(transport, mode=mode, client_info=CLIENT, message_handler=hear) as client:
            assert client.protocol_version == ("2025-11-25" if era == "handshake" else MODERN)
            yield Emceepee(client, era, stderr)
    assert not garbled
    check_log(stderr)


Open = Callable[..., AbstractAsyncContextManager[Emceepee]]
"""`open_emceepee` with its first argument, and perhaps an era, given already: a fixture."""


# -- bare pipes -----------------------------------------------------------------------------------


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
                assert not self._rest, "half a line"
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
    command = [*COMMAND, "stdio", "--config", str(config), "--log-level", "debug"]
    pipe = subprocess.PIPE
    with trio.fail_after(GUARD), stderr.open("w") as errlog:
        child = await trio.lowlevel.open_process(command, stdin=pipe, stdout=pipe, stderr=errlog)
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
    check_log(stderr)


def is_running(pid: int) -> bool:
    """Also true of a process that nobody has waited for."""
    return Path(f"/proc/{pid}").exists()


async def refusal(emceepee: Emceepee, method: str, params: Json | None = None) -> Json:
    """The JSON-RPC error that a request is answered with."""
    try:
        result = await emceepee.request(method, params)
    except MCPError as error:
        said: Json = error.error.model_dump(exclude_none=True)
        return said
    raise AssertionError(f"{method} was answered with {result}")
