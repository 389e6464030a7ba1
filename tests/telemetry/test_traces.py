"""One trace from a client through us to a server and back, seen by real servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from asgi_client import BATCHING, DONE, META, Client, request
from asgi_world import World, listening, open_world
from emceepee_trio.config import Config, Server
from emceepee_trio.model.states import QuestionState
from emceepee_trio.telemetry.spans import Spans
from emceepee_trio.tracing import TracedRequest
from fake_backends import Journal, raw, until
from traced import Traced, context_of, linked, parent_of, said, traceparent, tracing

GUARD = 60.0
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
THEIRS = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "rojo=1", "baggage": "who=ada"}
CALL = "tools/call execute_tool"


@attrs.define(eq=False)
class Scene:
    world: World
    client: Client
    journal: Journal
    traced: Traced
    last_id: int = 0
    """Of a request."""

    def ask(self, tool: str, meta: Any = None, **more: Any) -> Any:
        asked = {"server": "raw", "tool": tool, "args": {"text": "hello"}, **more}
        params = {"name": "execute_tool", "arguments": asked}
        self.last_id = next(self.client.ids)
        more = {"_meta": meta} if meta else {}
        return self.client.request("tools/call", self.last_id, **params, **more)

    async def reached(self, tool: str) -> Any:
        """The `_meta` with which it was called."""
        entry = await self.journal.wait_for(
            lambda e: e.get("method") == "tools/call" and e["params"]["name"] == tool
        )
        return entry["params"].get("_meta", {})


@asynccontextmanager
async def scene(
    folder: Path, *flags: str, can: Mapping[str, Any] | None = None, **server: Any
) -> AsyncGenerator[Scene]:
    journal = Journal(folder / "journal")
    entry = Server("raw", **{**raw(*flags, *journal.flags), **server})
    with tracing() as traced:
        async with open_world(Config(servers=(entry,)), GUARD, traced.spans) as world:
            client = await world.joined(**(can or {}))
            yield Scene(world, client, journal, traced)
        traced.check()


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_is_one_trace_from_the_client_to_the_server(
    tmp_path: Path, era: Literal["handshake", "modern"]
) -> None:
    flags = ["--discover", "modern"] if era == "modern" else []
    async with scene(tmp_path, *flags) as it:
        if era == "modern":
            asked: Any = {"server": "raw", "tool": "echo", "args": {"text": "hello"}}
            await it.client.modern_tool("execute_tool", meta=THEIRS, **asked).answer()
        else:
            await it.ask("echo", THEIRS).answer()
        served, sent = it.traced.one("SERVER", CALL), it.traced.one("CLIENT", "tools/call echo")
        assert f"{context_of(served).trace_id:032x}" == TRACE
        assert f"{parent_of(served):016x}" == SPAN
        assert parent_of(sent) == context_of(served).span_id
        meta = await it.reached("echo")
        assert meta["traceparent"] == traceparent(sent)
        assert (meta["tracestate"], meta["baggage"]) == ("rojo=1", "who=ada")


async def test_what_is_said_of_a_call_are_the_words_of_the_conventions(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("echo").answer()
        served, sent = it.traced.one("SERVER", CALL), it.traced.one("CLIENT", "tools/call echo")
        about = said(served)
        assert about.pop("jsonrpc.request.id")
        assert len(about.pop("mcp.session.id")) < len(it.client.session or "")
        assert about == {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": it.client.version,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "execute_tool",
            "network.transport": "tcp",
            "network.protocol.name": "http",
        }
        about = said(sent)
        assert about.pop("jsonrpc.request.id")
        assert about == {
            "mcp.method.name": "tools/call",
            "mcp.protocol.version": "2025-11-25",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "echo",
            "network.transport": "pipe",
            "emceepee.server": "raw",
        }
        assert b"hello" not in repr([s.to_json() for s in it.traced.ended]).encode()


async def test_every_request_has_one_span(tmp_path: Path) -> None:
    """And not a second one of the SDK, which would make some by itself."""
    async with scene(tmp_path) as it:
        for method in ("ping", "tools/list", "prompts/list"):
            await it.client.request(method).answer()
        await it.ask("echo").answer()
        kinds = [(span.kind.name, span.name) for span in it.traced.ended]
        for name in ("initialize", "ping", "tools/list", "prompts/list", CALL):
            assert kinds.count(("SERVER", name)) == 1
        assert kinds.count(("CLIENT", "tools/call echo")) == 1
        scopes = {span.instrumentation_scope.name for span in it.traced.ended}  # type: ignore[union-attr]  # each has one
        assert scopes == {"emceepee_trio"}


async def test_what_a_connection_does_of_its_own_accord_is_part_of_no_request(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "late")
    async with scene(tmp_path) as it:
        await it.client.call("add_server", name="late", **raw(*journal.flags))
        await journal.wait_for_method("prompts/list")  # which nobody has asked for

        def listed() -> list[ReadableSpan]:
            spans = it.traced.named("CLIENT", "prompts/list")
            return [span for span in spans if said(span)["emceepee.server"] == "late"]

        await until(listed)
        for span in listed():
            assert parent_of(span) is None
            assert not span.links


async def test_a_promoted_call_is_linked_to_its_request_and_ends_later(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with scene(tmp_path) as it:
        asked = it.ask("slow", THEIRS, args={"file": str(go)})
        reached = await it.reached("slow")
        # A client that has stopped waiting, which makes a task of it whatever the clock says.
        it.client.cancel(it.last_id, reason="request timed out")
        await asked.complete()
        session = it.world.manager.sessions()[0]
        (call,) = session.calls.working()
        served, sent = it.traced.one("SERVER", CALL), it.traced.one("CLIENT", "tools/call slow")
        assert parent_of(sent) == context_of(served).span_id
        assert said(sent)["emceepee.task.id"] == call.task_id
        assert reached["traceparent"] == traceparent(sent)
        go.touch()
        await until(lambda: not session.calls.working())
        task = it.traced.one("INTERNAL", "task slow")
        assert parent_of(task) is None
        assert context_of(task).trace_id != context_of(served).trace_id
        assert linked(task) == {context_of(served).span_id, context_of(sent).span_id}
        assert (task.end_time or 0) > (served.end_time or 0)
        assert said(task)["emceepee.task.id"] == call.task_id
        await it.client.call("get_task_result", task_id=call.task_id)
        fetched = it.traced.one("SERVER", "tools/call get_task_result")
        assert linked(fetched) == {context_of(task).span_id}


async def test_what_a_task_asks_for_is_part_of_the_task(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("echo", timeout_ms=0).answer()
        session = it.world.manager.sessions()[0]
        await until(lambda: not session.calls.working())
        served, task = it.traced.one("SERVER", CALL), it.traced.one("INTERNAL", "task echo")
        assert linked(task) == {context_of(served).span_id}
        sent = it.traced.one("CLIENT", "tools/call echo")
        assert parent_of(sent) == context_of(task).span_id


async def test_a_task_that_fails_says_so(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("never", timeout_ms=0).answer()
        session = it.world.manager.sessions()[0]
        (task,) = session.calls.working()
        await it.reached("never")
        await it.client.call("cancel_task", task_id=task.task_id)
        span = it.traced.one("INTERNAL", "task never")
        assert said(span)["error.type"] == "cancelled"
        assert span.status.status_code is StatusCode.ERROR


async def test_errors_are_told_from_each_other(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("rpc_error").answer()
        sent = it.traced.one("CLIENT", "tools/call rpc_error")
        code = said(sent)["error.type"]
        assert code == said(sent)["rpc.response.status_code"]
        assert int(code) < 0
        assert sent.status.status_code is StatusCode.ERROR
        assert sent.status.description is None  # which is the server's own
        served = it.traced.one("SERVER", CALL)
        assert said(served)["error.type"] == "tool_error"
        await it.client.request("no/such/method").answer()
        (unknown,) = it.traced.named("SERVER", "_OTHER")
        assert said(unknown)["mcp.method.name"] == "no/such/method"
        assert said(unknown)["error.type"] == "-32601"


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_question_is_part_of_the_call_that_it_is_asked_for(
    tmp_path: Path, era: Literal["handshake", "modern"]
) -> None:
    flags = ["--discover", "modern"] if era == "modern" else []
    async with scene(tmp_path, *flags) as it:
        asking = it.ask("string_id_question")
        (session,) = it.world.manager.sessions()
        await until(lambda: session.questions.open("elicitation"))
        (question,) = session.questions.open("elicitation")
        session.questions.answer(question, QuestionState.ACCEPTED, {"action": "decline"})
        await asking.answer()
        await until(lambda: not session.calls.working())
        served = it.traced.one("SERVER", CALL)
        sent = it.traced.named("CLIENT", "tools/call string_id_question")
        # A second one is of the task that the call may have become by now.
        asked, *_ = it.traced.named("SERVER", "elicitation/create")
        about = said(asked)
        assert (about["emceepee.server"], about["emceepee.question.id"]) == ("raw", question.id)
        # A modern server has answered, and is asked again: so its question is beside the calls.
        around = served if era == "modern" else sent[0]
        assert parent_of(asked) == context_of(around).span_id
        assert len(sent) == (2 if era == "modern" else 1)
        seen = [event.name for event in sent[0].events]
        assert seen == ([] if era == "modern" else ["emceepee.question"])
        points = it.traced.measured("mcp.server.operation.duration")
        assert "elicitation/create" in [dict(p.attributes or {})["mcp.method.name"] for p in points]


async def test_a_question_of_a_call_that_becomes_a_task_goes_on_as_part_of_it(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as it:
        # Nobody can be asked there, so it is answered: with the question, and as a task.
        await it.ask("string_id_question").answer()
        (session,) = it.world.manager.sessions()
        (question,) = session.questions.open("elicitation")
        session.questions.answer(question, QuestionState.ACCEPTED, {"action": "decline"})
        await until(lambda: not session.calls.working())
        sent = it.traced.one("CLIENT", "tools/call string_id_question")
        task = it.traced.one("INTERNAL", "task string_id_question")
        before, after = it.traced.named("SERVER", "elicitation/create")
        assert parent_of(before) == context_of(sent).span_id
        assert parent_of(after) == context_of(task).span_id
        assert linked(after) == {context_of(before).span_id}


async def test_a_server_that_traces_says_what_its_question_is_part_of(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        asking = it.ask("ask", args={"params": {**form, "_meta": THEIRS}})
        (session,) = it.world.manager.sessions()
        await until(lambda: session.questions.open("elicitation"))
        (question,) = session.questions.open("elicitation")
        session.questions.cancel(question, "not now")
        await asking.answer()
        asked, *_ = it.traced.named("SERVER", "elicitation/create")
        assert f"{parent_of(asked):016x}" == SPAN
        assert f"{context_of(asked).trace_id:032x}" == TRACE


async def test_a_client_that_is_asked_itself_hears_of_which_trace_that_is(tmp_path: Path) -> None:
    can: dict[str, Any] = {"elicitation": {}, "roots": {}}
    async with scene(tmp_path, can=can) as it:
        roots = await listening(it.client)
        asked = await roots.message()
        assert asked["method"] == "roots/list"
        await it.client.reply(asked, {"roots": []})
        asking = it.ask("string_id_question", THEIRS)
        question = await asking.message()
        await it.client.reply(question, {"action": "decline"})
        await asking.answer()
        (put,) = it.traced.named("CLIENT", "elicitation/create")
        asked = it.traced.one("SERVER", "elicitation/create")
        assert parent_of(put) == context_of(asked).span_id
        assert f"{context_of(put).trace_id:032x}" == TRACE
        assert question["params"]["_meta"]["traceparent"] == traceparent(put)
        about = said(put)
        assert about.pop("jsonrpc.request.id") == question["id"]
        assert about.pop("emceepee.question.id") == said(asked)["emceepee.question.id"]
        assert len(about.pop("mcp.session.id")) < len(it.client.session or "")
        assert about == {
            "mcp.method.name": "elicitation/create",
            "mcp.protocol.version": it.client.version,
            "network.transport": "tcp",
            "network.protocol.name": "http",
        }
        of_its_own = it.traced.one("CLIENT", "roots/list")
        assert parent_of(of_its_own) is None
        points = it.traced.measured("mcp.client.operation.duration")
        assert "elicitation/create" in [dict(p.attributes or {})["mcp.method.name"] for p in points]


async def test_a_client_that_comes_again_with_an_answer_is_linked_to_what_goes_on(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as it:
        asked: Any = {"server": "raw", "tool": "string_id_question", "args": {}}
        call: Any = {"name": "execute_tool", "arguments": asked}
        can: dict[str, Any] = {f"{META}clientCapabilities": {"elicitation": {}}}
        said = (await it.client.modern("tools/call", meta=can | THEIRS, **call).answer())["result"]
        answers = {key: {"action": "decline"} for key in said["inputRequests"]}
        more = {"requestState": said["requestState"], "inputResponses": answers}
        retry = it.client.modern("tools/call", meta=can | THEIRS, **call, **more)
        assert "result" in await retry.answer()
        first, again = it.traced.named("SERVER", CALL)
        task = it.traced.one("INTERNAL", "task string_id_question")
        assert linked(again) == {context_of(first).span_id, context_of(task).span_id}
        assert {f"{context_of(each).trace_id:032x}" for each in (first, again)} == {TRACE}


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_to_connect_is_a_trace_of_its_own(
    tmp_path: Path, era: Literal["handshake", "modern"]
) -> None:
    flags = ["--discover", "modern"] if era == "modern" else []
    async with scene(tmp_path, *flags) as it:
        await it.ask("echo").answer()
        method = "server/discover" if era == "modern" else "initialize"
        greeted = it.traced.one("CLIENT", method)
        assert parent_of(greeted) is None
        assert said(greeted)["emceepee.server"] == "raw"
        (reached,) = it.journal.of(method)
        assert reached["params"]["_meta"]["traceparent"] == traceparent(greeted)


async def test_notifications_are_seen_in_either_direction(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("notify_many", args={"n": 0, "k": 1}).answer()
        await until(lambda: it.traced.named("SERVER", "notifications/tools/list_changed"))
        heard = it.traced.one("SERVER", "notifications/tools/list_changed")
        assert said(heard)["emceepee.server"] == "raw"
        assert "jsonrpc.request.id" not in said(heard)
        (ours,) = it.traced.named("CLIENT", "notifications/initialized")
        (reached,) = it.journal.of("notifications/initialized")
        assert reached["params"]["_meta"]["traceparent"] == traceparent(ours)
        (theirs,) = it.traced.named("SERVER", "notifications/initialized")
        assert "emceepee.server" not in said(theirs)


async def test_a_bug_in_who_traces_costs_nobody_what_came_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Spans):
        def heard(self, notice: TracedRequest) -> None:
            raise RuntimeError("a bug")

    async with open_world(tracing=Broken.of(None, None)) as world:
        client = await world.joined(BATCHING)
        said = await client.post([DONE, request(7, "ping"), DONE]).complete()
        (pong,) = said.messages
        assert (pong["id"], pong["result"]) == (7, {})
    assert {record.message for record in caplog.records} == {"trace_crashed"}


async def test_progress_is_seen_in_the_span_of_its_request(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("progress", {"progressToken": "p"}).answer()
        sent = it.traced.one("CLIENT", "tools/call progress")
        assert [event.name for event in sent.events] == 3 * ["notifications/progress"]


async def test_calls_of_a_shared_server_are_traced_like_all_others(tmp_path: Path) -> None:
    async with scene(tmp_path, scope="principal") as it:
        asking = it.ask("string_id_question", THEIRS)
        (session,) = it.world.manager.sessions()
        await until(lambda: session.questions.open("elicitation"))
        (question,) = session.questions.open("elicitation")
        session.questions.cancel(question, "not now")
        await asking.answer()
        served = it.traced.one("SERVER", CALL)
        sent = it.traced.one("CLIENT", "tools/call string_id_question")
        assert parent_of(sent) == context_of(served).span_id
        asked, *_ = it.traced.named("SERVER", "elicitation/create")
        assert parent_of(asked) == context_of(sent).span_id
        meta = await it.reached("string_id_question")
        assert meta["traceparent"] == traceparent(sent)


async def test_how_long_requests_took_is_measured_in_the_same_words(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.ask("echo").answer()
        await it.ask("made up").answer()
        await it.client.request("no/such/method").answer()
        points = it.traced.measured("mcp.server.operation.duration")
        methods = {dict(p.attributes or {})["mcp.method.name"] for p in points}
        assert methods >= {"initialize", "tools/call", "_OTHER"}
        asked = [
            dict(point.attributes or {})
            for point in it.traced.measured("mcp.client.operation.duration")
        ]
        tools = {each["gen_ai.tool.name"] for each in asked if "gen_ai.tool.name" in each}
        assert tools == {"echo", "other"}
        assert not [each for each in asked if "jsonrpc.request.id" in each]


@pytest.mark.parametrize(
    "meta",
    [
        {"traceparent": "garbage"},
        {"traceparent": 5, "tracestate": ["a"], "baggage": {"x": 1}},
        {"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"},
        {"traceparent": "00-" + "f" * 10_000, "baggage": "x" * 100_000},
    ],
)
async def test_nonsense_of_a_client_begins_a_trace_of_ours(
    tmp_path: Path, meta: dict[str, Any]
) -> None:
    async with scene(tmp_path) as it:
        await it.ask("echo", meta).answer()
        assert parent_of(it.traced.one("SERVER", CALL)) is None
        reached = await it.reached("echo")
        assert reached["traceparent"] == traceparent(it.traced.one("CLIENT", "tools/call echo"))
        assert not {"baggage", "tracestate"} & reached.keys()
