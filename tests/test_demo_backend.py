"""The demo backend under the SDK's own client, in both eras; and that the raw server does as told.

What the tools do is tested here once, so that other tests may rely on either backend.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import attrs
import mcp_types as types
import pytest
import trio
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.subscriptions import ToolsListChanged as ToolsChanged

from fake_backends import Journal, demo, raw, until

Json = dict[str, Any]
MODERN = "2026-07-28"
COUNTER = "demo://counter"

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
both_eras = pytest.mark.parametrize("mode", ["legacy", "auto"])


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@attrs.define(eq=False)
class Person:
    """Who sits at the client: answers what backends ask, and keeps what they say."""

    action: Literal["accept", "decline", "cancel"] = "accept"
    content: dict[str, str | int | float | bool | list[str] | None] | None = None
    asked: list[types.ElicitRequestParams] = attrs.Factory(list)
    logs: list[types.LoggingMessageNotificationParams] = attrs.Factory(list)
    said: list[str] = attrs.Factory(list)
    told: trio.Event = attrs.Factory(trio.Event)

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append(params)
        content = self.content if self.action == "accept" and params.mode == "form" else None
        return types.ElicitResult(action=self.action, content=content)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        answer = types.TextContent(text=f"{params.max_tokens} tokens about nothing")
        return types.CreateMessageResult(role="assistant", content=answer, model="test")

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate(
            {"roots": [{"uri": "file:///a"}, {"uri": "file:///b"}]}
        )

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(params)

    async def hear(self, message: object) -> None:
        self.said.append(getattr(message, "method", repr(message)))
        self.told.set()
        self.told = trio.Event()

    async def heard(self, *methods: str) -> None:
        while not set(methods) <= set(self.said):
            await self.told.wait()


@asynccontextmanager
async def demo_client(
    mode: str, person: Person | None = None, stderr: Path | None = None, **options: Any
) -> AsyncIterator[Client]:
    if person is not None:
        options |= {
            "elicitation_callback": person.elicit,
            "sampling_callback": person.sample,
            "list_roots_callback": person.roots,
            "logging_callback": person.log,
            "message_handler": person.hear,
        }
    with (stderr or Path("/dev/null")).open("w") as errlog, trio.fail_after(60):
        transport = stdio_client(StdioServerParameters(**demo()), errlog=errlog)
        async with Client(transport, mode=mode, **options) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else MODERN)
            yield client


# -- the demo backend ----------------------------------------------------------------------------


@both_eras
async def test_echo_add_and_fail_answer(mode: str) -> None:
    async with demo_client(mode) as client:
        assert text_of(await client.call_tool("echo", {"text": "grüße 🦑\n"})) == "grüße 🦑\n"
        added = await client.call_tool("add", {"a": 2, "b": 3.5})
        assert added.structured_content == {"sum": 5.5}
        assert json.loads(text_of(added)) == {"sum": 5.5}
        whole = await client.call_tool("add", {"a": 2, "b": 3})
        assert isinstance((whole.structured_content or {})["sum"], int)
        failed = await client.call_tool("fail", {"message": "no luck"})
        assert failed.is_error
        assert text_of(failed) == "no luck"
        mistyped = await client.call_tool("add", {"a": 2})
        assert mistyped.is_error
        assert "b" in text_of(mistyped)


@both_eras
async def test_every_tool_is_described_typed_and_annotated(mode: str) -> None:
    async with demo_client(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {
            *("echo", "add", "slow", "ask_name", "ask_url", "ask_model", "list_roots"),
            *("log", "notify", "bump", "fail", "crash"),
        }
        for tool in tools.values():
            assert tool.description
            assert tool.annotations is not None
            assert tool.input_schema["type"] == "object"
        assert [tool.name for tool in tools.values() if tool.output_schema] == ["add"]
        assert tools["crash"].annotations == types.ToolAnnotations(
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=False,
            open_world_hint=False,
        )
        assert client.instructions
        capabilities = client.server_capabilities
        assert capabilities.tools == types.ToolsCapability(list_changed=True)
        assert capabilities.prompts == types.PromptsCapability(list_changed=True)
        assert capabilities.resources == types.ResourcesCapability(
            list_changed=True, subscribe=True
        )
        assert capabilities.completions is not None
        assert capabilities.logging is not None


@both_eras
async def test_slow_reports_progress_and_a_cancellation_reaches_it(
    mode: str, tmp_path: Path
) -> None:
    stderr, seen, started = tmp_path / "stderr", [], trio.Event()

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))
        started.set()

    async with demo_client(mode, stderr=stderr) as client:
        done = await client.call_tool(
            "slow", {"seconds": 0.02, "steps": 2}, progress_callback=progress
        )
        assert text_of(done) == "done after 0.02 s in 2 steps"
        assert seen == [(1, 2, "step 1 of 2"), (2, 2, "step 2 of 2")]

        started = trio.Event()
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                arguments = {"seconds": 3600, "steps": 1000}
                await client.call_tool("slow", arguments, progress_callback=progress)

            nursery.start_soon(call)
            await until(lambda: "slow started: 3600 s" in stderr.read_text())
            assert "slow was cancelled" not in stderr.read_text()
            nursery.cancel_scope.cancel()
        await until(lambda: "slow was cancelled" in stderr.read_text())
        assert text_of(await client.call_tool("echo", {"text": "still here"})) == "still here"


@both_eras
async def test_ask_name_asks_with_a_form_and_greets(mode: str) -> None:
    person = Person(content={"name": "Ada", "excited": True})
    async with demo_client(mode, person) as client:
        asked = await client.call_tool("ask_name", {"question": "Who are you?"})
        assert text_of(asked) == "Hello, Ada!"
        (params,) = person.asked
        assert isinstance(params, types.ElicitRequestFormParams)
        assert params.message == "Who are you?"
        assert params.requested_schema["required"] == ["name"]
        properties = params.requested_schema["properties"]
        assert properties["name"]["type"] == "string"
        assert properties["excited"]["type"] == "boolean"
        assert properties["excited"]["default"] is False
        person.content = {"name": "Ada"}
        assert text_of(await client.call_tool("ask_name")) == "Hello, Ada"
        person.action = "decline"
        assert text_of(await client.call_tool("ask_name")) == "You declined."
        person.action = "cancel"
        assert text_of(await client.call_tool("ask_name")) == "You cancelled."


@both_eras
async def test_ask_url_ask_model_and_list_roots_ask_the_client(mode: str) -> None:
    person = Person()
    async with demo_client(mode, person) as client:
        assert text_of(await client.call_tool("ask_url")) == "The answer was: accept"
        assert isinstance(person.asked[0], types.ElicitRequestURLParams)
        sampled = await client.call_tool("ask_model", {"prompt": "nothing"})
        assert text_of(sampled) == "200 tokens about nothing"
        assert text_of(await client.call_tool("list_roots")) == "file:///a\nfile:///b"
        if mode == "legacy":
            await person.heard("notifications/elicitation/complete")


@both_eras
async def test_a_client_that_cannot_answer_is_not_asked(mode: str) -> None:
    async with demo_client(mode) as client:
        for tool, arguments in (
            ("ask_name", {}),
            ("ask_model", {"prompt": "x"}),
            ("list_roots", {}),
        ):
            with pytest.raises(MCPError) as refused:
                await client.call_tool(tool, arguments)
            assert refused.value.error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
        assert (await client.call_tool("ask_url")).is_error


async def test_logs_respect_the_level_of_a_handshake_client() -> None:
    person = Person()
    async with demo_client("legacy", person) as client:
        await client.call_tool("log", {"message": "one"})
        await client.set_logging_level("error")
        await client.call_tool("log", {"message": "two"})
        await client.call_tool("log", {"message": "three", "level": "critical"})
        assert [(log.level, log.data) for log in person.logs] == [
            ("info", "one"),
            ("critical", "three"),
        ]


@pytest.mark.parametrize(("wanted", "logged"), [(None, []), ("warning", ["bad"])])
async def test_modern_logs_are_sent_only_to_who_opted_in(
    wanted: str | None, logged: list[str]
) -> None:
    person = Person()
    async with demo_client("auto", person, log_level=wanted) as client:
        await client.call_tool("log", {"message": "good", "level": "info"})
        await client.call_tool("log", {"message": "bad", "level": "error"})
        assert [log.data for log in person.logs] == logged


async def test_a_handshake_client_hears_of_changes_and_of_what_it_subscribed_to() -> None:
    person, updated = Person(), "notifications/resources/updated"
    lists = [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]
    async with demo_client("legacy", person) as client:
        assert text_of(await client.call_tool("bump")) == "1"
        await client.subscribe_resource(COUNTER)
        assert text_of(await client.call_tool("bump")) == "2"
        await person.heard(updated)
        assert person.said == [updated]  # none for the first
        await client.unsubscribe_resource(COUNTER)
        assert text_of(await client.call_tool("bump")) == "3"
        person.said.clear()
        assert text_of(await client.call_tool("notify")) == "announced"
        await person.heard(updated)
        assert person.said == [*lists, updated]


async def test_a_modern_client_hears_of_what_it_listens_to() -> None:
    async with (
        demo_client("auto") as client,
        client.listen(
            tools_list_changed=True,
            resources_list_changed=True,
            prompts_list_changed=True,
            resource_subscriptions=[COUNTER],
        ) as changes,
    ):
        assert text_of(await client.call_tool("bump")) == "1"
        assert await anext(changes) == ResourceUpdated(uri=COUNTER)
        await client.call_tool("notify")
        assert {type(await anext(changes)) for _ in range(4)} == {
            ToolsChanged,
            ResourcesListChanged,
            PromptsListChanged,
            ResourceUpdated,
        }


@both_eras
async def test_resources_templates_prompts_and_completions(mode: str) -> None:
    async with demo_client(mode) as client:
        listed = (await client.list_resources()).resources
        assert {str(resource.uri) for resource in listed} == {
            "demo://greeting",
            "demo://pixel",
            COUNTER,
        }
        (pixel,) = (await client.read_resource("demo://pixel")).contents
        assert isinstance(pixel, types.BlobResourceContents)
        assert pixel.blob.startswith("iVBORw0KGgo")
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "demo://files/{name}"
        names = await client.complete(
            types.ResourceTemplateReference(uri=template.uri_template),
            {"name": "name", "value": "n"},
        )
        assert names.completion.values == ["notes.md"]
        (notes,) = (await client.read_resource("demo://files/notes.md")).contents
        assert isinstance(notes, types.TextResourceContents)
        assert notes.text.startswith("# Notes")
        with pytest.raises(MCPError, match=r"no file 'nope'.*notes\.md"):
            await client.read_resource("demo://files/nope")
        (prompt,) = (await client.list_prompts()).prompts
        assert [argument.name for argument in prompt.arguments or ()] == ["topic", "style"]
        styles = await client.complete(
            types.PromptReference(name=prompt.name), {"name": "style", "value": ""}
        )
        assert styles.completion.values == ["brief", "formal", "playful"]
        (message,) = (
            await client.get_prompt(prompt.name, {"topic": "tea", "style": "formal"})
        ).messages
        assert message.content == types.TextContent(text="Summarize tea in a formal style.")


# -- both, as processes --------------------------------------------------------------------------


@attrs.define(eq=False)
class Pipes:
    """A backend at bare pipes: JSON lines out and in, one at a time."""

    process: trio.Process
    buffer: bytes = b""
    ids: Iterator[int] = attrs.Factory(itertools.count)

    async def send(self, *messages: Json) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
            await self.process.stdin.send_all(line)

    async def line(self) -> bytes:
        """The next line, or what there is of one when the process closed its stdout."""
        assert self.process.stdout is not None
        while b"\n" not in self.buffer:
            chunk = await self.process.stdout.receive_some()
            if not chunk:
                break
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    async def receive(self) -> Any:
        return json.loads(await self.line())

    async def request(self, method: str, params: Json | None = None) -> Any:
        """The next message, normally the answer."""
        await self.send({"id": next(self.ids), "method": method, "params": params or {}})
        return await self.receive()

    async def call(self, tool: str, meta: Json | None = None, **arguments: object) -> Any:
        params: Json = {"name": tool, "arguments": arguments}
        return await self.request("tools/call", params | ({"_meta": meta} if meta else {}))

    async def initialize(self, version: str = "2025-11-25") -> Any:
        client = {"clientInfo": {"name": "pipes", "version": "0"}, "capabilities": {}}
        answer = await self.request("initialize", {"protocolVersion": version, **client})
        await self.send({"method": "notifications/initialized"})
        return answer["result"]

    async def end_of_stdin(self) -> int:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        return await self.process.wait()


@asynccontextmanager
async def pipes_to(entry: Json, stderr: Path | None = None) -> AsyncIterator[Pipes]:
    command = [entry["command"], *entry["args"]]
    with (stderr or Path("/dev/null")).open("w") as errlog:
        with trio.fail_after(60):
            process = await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errlog
            )
            try:
                yield Pipes(process)
            finally:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
                    for stream in process.stdin, process.stdout:
                        if stream is not None:
                            await stream.aclose()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_the_demo_speaks_every_version_of_the_handshake(version: str) -> None:
    async with pipes_to(demo()) as pipes:
        assert (await pipes.initialize(version))["protocolVersion"] == version
        answer = await pipes.call("echo", text="hello")
        assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize("how", ["end of stdin", "SIGTERM"])
async def test_the_demo_exits_at_once_also_in_the_middle_of_a_call(
    how: str, tmp_path: Path
) -> None:
    stderr = tmp_path / "stderr"
    async with pipes_to(demo(), stderr) as pipes:
        await pipes.initialize()
        call = {"name": "slow", "arguments": {"seconds": 3600}}
        await pipes.send({"id": "slow", "method": "tools/call", "params": call})
        await until(lambda: "slow started" in stderr.read_text())
        if how == "SIGTERM":
            pipes.process.send_signal(signal.SIGTERM)
            assert await pipes.process.wait() == 0
        else:
            assert await pipes.end_of_stdin() == 0
        assert "Traceback" not in stderr.read_text()


async def test_crash_leaves_a_line_and_its_exit_code(tmp_path: Path) -> None:
    stderr = tmp_path / "stderr"
    async with pipes_to(demo(), stderr) as pipes:
        await pipes.initialize()
        call = {"name": "crash", "arguments": {"exit_code": 41}}
        await pipes.send({"id": "crash", "method": "tools/call", "params": call})
        assert await pipes.line() == b""
        assert await pipes.process.wait() == 41
        assert stderr.read_text() == "demo: crashing with exit code 41\n"


# -- the raw server ------------------------------------------------------------------------------


def is_echoed(result: Json, text: str) -> bool:
    block = {"type": "text", "text": text, "x-vendor": {"block": 1}}
    return result["content"] == [block] and result["x-vendor"] == "top" and "_meta" in result


async def test_the_raw_server_echoes_and_keeps_a_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    async with pipes_to(raw("--version", "2024-11-05", *journal.flags)) as pipes:
        assert (await pipes.initialize())["protocolVersion"] == "2024-11-05"
        assert is_echoed((await pipes.call("echo", text="hi"))["result"], "hi")
        assert (await pipes.request("logging/setLevel", {"level": "error"}))["result"] == {}
        assert await pipes.end_of_stdin() == 0
    assert (await journal.wait_for_method("tools/call"))["params"]["arguments"] == {"text": "hi"}
    assert await journal.wait_for(lambda entry: entry.get("eof"))
    assert journal.entries()[0] == {"started": pipes.process.pid}
    assert [len(journal.of(method)) for method in ("initialize", "logging/setLevel", "x")] == [
        1,
        1,
        0,
    ]


async def test_what_the_raw_server_does_with_discover() -> None:
    async with pipes_to(raw()) as pipes:
        assert (await pipes.request("server/discover"))["error"]["code"] == -32601
    async with pipes_to(raw("--discover", "die")) as pipes:
        await pipes.send({"id": 1, "method": "server/discover"})
        assert await pipes.process.wait() == 1
    async with pipes_to(raw("--discover", "silent")) as pipes:
        await pipes.send({"id": 1, "method": "server/discover"})
        assert (await pipes.initialize())["serverInfo"]["name"] == "raw"  # the first thing it says


async def test_the_raw_server_is_modern_on_request() -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "sampling": {}},
    }
    async with pipes_to(raw("--discover", "modern")) as pipes:
        refused = await pipes.request("initialize", {"protocolVersion": "2025-11-25"})
        assert refused["error"]["code"] == -32022
        discovered = await pipes.request("server/discover", {"_meta": meta})
        assert discovered["result"]["supportedVersions"] == [MODERN]
        asked = (await pipes.call("two_questions", meta))["result"]
        assert asked["resultType"] == "input_required"
        answers = {"q0": {"action": "decline"}, "q1": {"role": "assistant"}}
        assert asked["inputRequests"].keys() == answers.keys()
        again = {"name": "two_questions", "_meta": meta, "inputResponses": answers}
        lost = await pipes.request("tools/call", again)
        assert lost["error"]["code"] == -32602
        again["requestState"] = asked["requestState"]
        done = (await pipes.request("tools/call", again))["result"]
        assert done["resultType"] == "complete"
        assert [json.loads(block["text"]) for block in done["content"]] == list(answers.values())
        listen = {"notifications": {"toolsListChanged": True}, "_meta": meta}
        await pipes.send({"id": "sub", "method": "subscriptions/listen", "params": listen})
        acknowledged = await pipes.receive()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        changed = await pipes.call("notify_many", meta, n=0)
        assert changed["method"] == "notifications/tools/list_changed"
        assert changed["params"] == {"_meta": {"io.modelcontextprotocol/subscriptionId": "sub"}}


async def test_the_sdk_client_of_either_era_gets_along_with_the_raw_server() -> None:
    for mode, flags in (("legacy", ()), (MODERN, ("--discover", "modern")), ("auto", ())):
        person = Person(content={"name": "Ada"})
        with trio.fail_after(60):
            parameters = StdioServerParameters(**raw(*flags, "--tools", 60, "--page", 50))
            async with Client(parameters, mode=mode, elicitation_callback=person.elicit) as client:
                first = await client.list_tools()
                last = await client.list_tools(cursor=first.next_cursor)
                assert [len(first.tools), len(last.tools)] == [50, 10]
                answer = json.loads(text_of(await client.call_tool("string_id_question")))
                assert answer["content"] == {"name": "Ada"}


async def test_the_raw_server_asks_with_string_ids_and_withdraws(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    async with pipes_to(raw(*journal.flags)) as pipes:
        question = await pipes.call("string_id_question")
        assert isinstance(question["id"], str)
        await pipes.send({"id": question["id"], "result": {"action": "decline"}})
        answer = await pipes.receive()
        assert json.loads(answer["result"]["content"][0]["text"]) == {"action": "decline"}
        question = await pipes.call("roots")
        assert question["method"] == "roots/list"
        await pipes.send({"id": question["id"], "error": {"code": -32601, "message": "no"}})
        answer = await pipes.receive()
        assert "error" in json.loads(answer["result"]["content"][0]["text"])
        question = await pipes.call("withdraw_question")
        withdrawal = await pipes.receive()
        assert withdrawal["method"] == "notifications/cancelled"
        assert withdrawal["params"]["requestId"] == question["id"]
        assert (await pipes.receive())["result"]["content"][0]["text"] == "withdrawn"
        await pipes.send({"id": question["id"], "result": {"action": "cancel"}})
        await journal.wait_for(lambda entry: entry.get("id") == question["id"])


async def test_slow_of_the_raw_server_ends_with_a_file_or_a_cancellation(tmp_path: Path) -> None:
    journal, file = Journal(tmp_path / "journal"), tmp_path / "file"
    async with pipes_to(raw(*journal.flags)) as pipes:
        call = {"name": "slow", "arguments": {"file": str(file)}}
        await pipes.send(
            {"id": "a", "method": "tools/call", "params": call},
            {"id": "b", "method": "tools/call", "params": call},
            {"method": "notifications/cancelled", "params": {"requestId": "a"}},
        )
        assert (await journal.wait_for_marker("slow cancelled"))["id"] == "a"
        await journal.wait_for_marker("slow started", count=2)
        file.touch()
        assert (await pipes.receive())["id"] == "b"


async def test_odd_answers_of_the_raw_server() -> None:
    async with pipes_to(raw()) as pipes:
        for tool, expected in ODD_ANSWERS.items():
            answer = await pipes.call(tool)
            assert expected(answer), (tool, answer)
        progressed = await pipes.call("progress", {"progressToken": "t"}, n=2)
        assert progressed["params"] == {
            "progressToken": "t",
            "progress": 1,
            "total": 2,
            "message": "step 1",
        }
        assert (await pipes.receive())["params"]["progress"] == 2
        assert "result" in await pipes.receive()
        thing = await pipes.call("notify_many", n=1, k=1)
        assert thing["method"] == "notifications/vendor/thing"
        assert [(await pipes.receive())["method"].split("/")[1] for _ in range(3)] == [
            "tools",
            "resources",
            "prompts",
        ]
        assert "result" in await pipes.receive()
        assert (await pipes.call("log_many", n=1))["params"]["data"] == {"n": 0}
        assert "result" in await pipes.receive()
        await pipes.send({"id": "x", "method": "tools/call", "params": {"name": "garbage"}})
        lines = [await pipes.line()]
        while not lines[-1].endswith(b"}]}}"):
            lines.append(await pipes.line())
        assert lines[:2] == [b"this is not JSON", b'{"broken": ']
        await pipes.send({"id": "y", "method": "tools/call", "params": {"name": "never"}})
        await pipes.send({"id": "z", "method": "tools/call", "params": {"name": "exit"}})
        assert await pipes.line() == b""
        assert await pipes.process.wait() == 7


ODD_ANSWERS: dict[str, Callable[[Any], bool]] = {
    "unknown_content": lambda a: a["result"]["content"][0]["type"] == "video",
    "structured_only": lambda a: "content" not in a["result"],
    "schema_mismatch": lambda a: isinstance(a["result"]["structuredContent"]["n"], str),
    "big": lambda a: len(a["result"]["content"][0]["text"]) == 5_000_000,
    "unicode": lambda a: "\u2028" in a["result"]["content"][0]["text"],
    "split": lambda a: a["result"]["content"][0]["text"] == "grüße 🦑",
    "bad_result": lambda a: a["result"] == [],
    "rpc_error": lambda a: (
        a["error"] == {"code": -32099, "message": "no such luck", "data": {"why": ["because"]}}
    ),
    "batch": lambda a: (
        [sorted(message) for message in a]
        == [["jsonrpc", "method", "params"], ["id", "jsonrpc", "result"]]
    ),
    "stderr": lambda a: a["result"]["content"][0]["text"] == "written",
    "where": lambda a: "pid" in json.loads(a["result"]["content"][0]["text"]),
}


async def test_lists_resources_and_completions_of_the_raw_server() -> None:
    flags = "--tools", 300, "--resources", 120, "--prompts", 101, "--no-capability", "completions"
    async with pipes_to(raw(*flags)) as pipes:
        for key, size in ("tools", 300), ("resources", 120), ("prompts", 101):
            names: list[str] = []
            params: Json | None = {}
            while params is not None:
                page = (await pipes.request(f"{key}/list", params))["result"]
                names += [entry["name"] for entry in page[key]]
                params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
            assert len(names) == len(set(names)) == size
        odd = await pipes.request("resources/read", {"uri": "raw://odd"})
        assert "pixels" in odd["result"]["contents"][0]
        missing = await pipes.request("resources/read", {"uri": "raw://missing"})
        assert missing["error"]["code"] == -32002
        argument = {"argument": {"name": "x", "value": "v"}, "ref": {}}
        assert (await pipes.request("completion/complete", argument))["error"]["code"] == -32601
    async with pipes_to(raw("--same-cursor", "--page", 2)) as pipes:
        once = (await pipes.request("tools/list"))["result"]
        cursor = {"cursor": once["nextCursor"]}
        assert (await pipes.request("tools/list", cursor))["result"] == once
        found = (await pipes.request("completion/complete", argument))["result"]["completion"]
        assert (found["total"], found["hasMore"], len(found["values"])) == (250, True, 100)


async def test_faults_of_the_raw_server_at_its_start(tmp_path: Path) -> None:
    journal, stderr, file = Journal(tmp_path / "journal"), tmp_path / "stderr", tmp_path / "file"
    async with pipes_to(raw("--exit-at-once", 5), stderr) as pipes:
        assert await pipes.process.wait() == 5
        assert stderr.read_text() == "raw: cannot start, the configuration is missing\n"
    started = (("--garbage", b"Welcome to the raw server!"), ("--silent", b""))
    for n, (flag, first) in enumerate(started, start=1):
        async with pipes_to(raw(flag, *journal.flags)) as pipes:
            await pipes.send({"id": flag, "method": "ping"})
            await journal.wait_for_method("ping", count=n)
            assert await pipes.end_of_stdin() == 0
            assert await pipes.line() == first
            assert b"jsonrpc" not in pipes.buffer
    async with pipes_to(raw("--start-when", file, "--slow-start", 0.01)) as pipes:
        await pipes.send({"id": 1, "method": "ping"})
        file.touch()
        assert (await pipes.receive())["result"] == {}
    async with pipes_to(raw("--stubborn", *journal.flags)) as pipes:
        assert (await pipes.request("ping"))["result"] == {}
        pipes.process.send_signal(signal.SIGTERM)
        assert pipes.process.stdin is not None
        await pipes.process.stdin.aclose()
        await journal.wait_for(lambda entry: entry.get("eof"), count=3)
        assert pipes.process.returncode is None
