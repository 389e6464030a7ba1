"""A real ``emceepee stdio``, and the SDK's client that drives it from the outside.

What comes back is shown as it came, not as the SDK's models would have it. Whoever leaves
:func:`open_emceepee` finds that its stderr was log lines, its stdout messages, and no bug logged.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import attrs
import trio
import trio.testing
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation

import warm
from stalls import check_daemon

Json = dict[str, Any]
Era = Literal["handshake", "modern"]
MODERN = "2026-07-28"

GUARD = 60.0
"""Seconds after which a test hangs; nothing takes a fraction of it."""

COMMAND = (sys.executable, "-m", "emceepee_trio")
CLIENT = Implementation(name="tests", version="0")


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
    """What a daemon has written until its end."""
    log = log_lines(stderr)
    assert not [line for line in log if "traceback" in line]
    check_daemon(log)


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
    note: str = ""
    """That arguments were ignored."""
    open_questions: Sequence[str] = ()
    """Ids of those that were told before."""

    @classmethod
    def of(cls, result: Json) -> Answer:
        given = result.get("content")
        content = list(given) if isinstance(given, list) else []
        pending, news, known = {}, {}, list[str]()
        said = _context(content[-1], "open_questions") if content else None
        if said and said.keys() <= {"open_questions", "more_open_questions"}:
            content.pop()  # else it is what await_activity says
            known = said["open_questions"]
        if content and (said := _context(content[-1], "pending_client_action")):
            content.pop()
            assert list(said) == ["pending_client_action"]
            pending = said["pending_client_action"]
        if content and (said := _context(content[-1], "events_since_last_response")):
            content.pop()
            assert said.keys() <= {"events_since_last_response", "more", "events_lost"}
            news = said
        note = ""
        if content and (said := _context(content[-1], "note")) and list(said) == ["note"]:
            content.pop()
            note = said["note"]
        return cls(result, content, news, pending, note, known)

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
    def kept_at(self) -> str | None:
        """Where all of it is, if this is only a preview."""
        links = [block["uri"] for block in self.content if block.get("type") == "resource_link"]
        return next((uri for uri in links if uri.startswith("emceepee://results/")), None)

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
    lost: int = attrs.field(default=0, init=False)
    """Events that it was told it will not be given."""

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Any
    ) -> Json:
        """The raw result. *options* are those of the SDK's dispatcher."""
        call: CallOptions = {**options}  # type: ignore[typeddict-item]  # of any
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
        told = [answer.events]
        self.lost += answer.news.get("events_lost", 0)
        if tool == "await_activity" and not result.get("isError"):
            told += [group["events"] for group in answer.json["events"]]
            self.lost += answer.json.get("events_lost", 0)
        for events in told:
            assert events == sorted(events, key=lambda event: str(event["id"]))
            for event in events:
                self.events += await self._parts(event)
        return answer

    async def _parts(self, event: Json) -> list[Json]:
        """What is told by this event, one by one, as the server's status has it."""
        incident = event["data"].get("incident")
        if incident is None:
            return [event]
        data = {key: value for key, value in event["data"].items() if key != "incident"}
        recent = (await self.status(event["server"]))["recent_events"]
        parts = [
            each
            for each in recent
            if incident["firstEventId"] <= each["id"] < event["id"]
            and each["type"] in incident["events"]
        ]
        assert Counter(each["type"] for each in parts) == incident["events"]
        return [*parts, {**event, "data": data}]

    async def says(self, tool: str, /, **arguments: Any) -> Any:
        """What a tool of ours answers, wherever all of it is."""
        answer = await self.call(tool, **arguments)
        if (uri := answer.kept_at) is None:
            return answer.json
        (whole,) = (await self.request("resources/read", {"uri": uri}))["contents"]
        return json.loads(whole["text"])

    async def all_of(self, tool: str, key: str, /, **arguments: Any) -> list[Json]:
        """The entries of a list of ours, of all pages."""
        said = await self.says(tool, **arguments)
        found: list[Json] = said[key]
        while "cursor" in said:
            said = await self.says(tool, **arguments, cursor=said["cursor"])
            found += said[key]
        return found

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
        """Whether that is told or not: who has seen one connecting is woken."""
        for server in servers:
            while (await self.status(server))["server"]["status"] != "connected":
                await self.call("await_activity")

    async def task_over(self, task_id: str) -> Json:
        """Its final state."""
        while True:
            task: Json = (await self.says("get_task", task_id=task_id))["task"]
            if task["status"] != "working":
                return task
            await self.call("await_activity")

    async def question(self) -> Json:
        """The only open one, as get_elicitations or get_sampling_requests lists it."""
        # What is open and what is news come from one look, so nothing is missed in between.
        said = await self.says("await_activity", timeout_ms=0)
        while not any(said["pending_client"].values()) and "open_questions" not in said:
            said = await self.says("await_activity")
        forms = await self.says("get_elicitations")
        samples = await self.says("get_sampling_requests")
        question: Json
        (question,) = forms["elicitations"] + samples["sampling_requests"]
        return question

    async def sent(self) -> None:
        """What other tasks were about to send has been taken up."""
        await trio.testing.wait_all_tasks_blocked()
        await self.request("resources/list")

    async def status(self, server: str) -> Json:
        said: Json = await self.says("get_server_status", server=server)
        return said

    async def pid(self, server: str) -> int:
        while (process := (await self.status(server)).get("process")) is None:
            await self.call("await_activity", timeout_ms=50)  # that it has started wakes nobody
        return int(process["pid"])


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
    client_info: Implementation = CLIENT,
    callbacks: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncGenerator[Emceepee]:
    """A client of a new ``emceepee stdio`` with these servers and settings.

    *callbacks* are the SDK's, for what it shall be asked.
    """
    config = write_config(folder, servers or {}, **settings)
    stderr = folder / "stderr.log"
    command, *args = warm.command("emceepee_trio")
    args += ["stdio", "--config", str(config), "--log-level", "debug"]
    garbled: list[Exception] = []

    async def hear(message: object) -> None:
        if isinstance(message, Exception):
            garbled.append(message)

    with trio.fail_after(GUARD), stderr.open("w") as errlog, _plainly():
        state = {"XDG_STATE_HOME": str(folder / "state")}
        program = StdioServerParameters(command=command, args=args, env=state)
        transport = stdio_client(program, errlog=errlog)
        mode = "legacy" if era == "handshake" else "auto"
        async with Client(
            transport,
            mode=mode,
            client_info=client_info,
            message_handler=hear,
            **(callbacks or {}),
        ) as client:
            assert client.protocol_version == ("2025-11-25" if era == "handshake" else MODERN)
            yield Emceepee(client, era, stderr)
    assert not garbled
    check_log(stderr)


Open = Callable[..., AbstractAsyncContextManager[Emceepee]]
"""`open_emceepee` with its first argument, and perhaps an era, given already: a fixture."""


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
