"""Clients of the modern era are asked themselves what servers ask, by answers and retries."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult
from trio.testing import wait_all_tasks_blocked

from asgi_client import META, MODERN, Client, Exchange, Json
from asgi_world import World, open_world
from emceepee_client import Answer, open_emceepee
from emceepee_trio.backend.connections.client import modern_meta
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.front.asking import rounds
from fake_backends import Journal, raw, until

ASKS: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
ADA = {"action": "accept", "content": {"name": "Ada"}}
COMPLETION = {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"}


@attrs.define(eq=False)
class Scene:
    world: World
    client: Client
    journal: Journal

    def execute(
        self, tool: str, *, can: Json = ASKS, client: Client | None = None, **params: Any
    ) -> Exchange:
        return (client or self.client).modern(
            "tools/call",
            meta={f"{META}clientCapabilities": can},
            name="execute_tool",
            arguments={"server": "raw", "tool": tool, "args": params.pop("args", {})}
            | params.pop("options", {}),
            **params,
        )

    async def asked(self, tool: str, **options: Any) -> Json:
        """What a call is answered with that the client has to answer first."""
        said: Json = (await self.execute(tool, **options).answer())["result"]
        assert said["resultType"] == "input_required", said
        return said

    @property
    def session(self) -> Any:
        (session,) = self.world.manager.sessions()
        return session

    @property
    def calls(self) -> int:
        """That have reached the server."""
        return len(self.journal.of("tools/call"))


@asynccontextmanager
async def scene(tmp_path: Path, *flags: Any, **limits: int) -> AsyncGenerator[Scene]:
    journal = Journal(tmp_path / "journal")
    server = Server(name="raw", **raw(*flags, *journal.flags))
    config = Config(servers=(server,), limits=attrs.evolve(Limits(), **limits))
    with trio.fail_after(60):
        async with open_world(config) as world:
            yield Scene(world, world.client(), journal)


def answer_of(message: Json) -> Answer:
    return Answer.of(message["result"])


async def test_a_retry_with_the_answer_continues_the_same_call(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        asked = await it.asked("string_id_question")
        ((key, request),) = asked["inputRequests"].items()
        assert request["method"] == "elicitation/create"
        assert request["params"]["message"] == "name?"
        assert len(asked["requestState"]) == 32
        given = {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        done = await it.execute("string_id_question", **given).answer()
        assert done["result"]["resultType"] == "complete"
        assert json.loads(answer_of(done).text) == ADA
        assert it.calls == 1
        assert it.session.calls.tasks() == []
        # It is done: its state is of nothing.
        _, error = await it.execute("string_id_question", **given).error()
        assert error["code"] == -32602


async def test_what_servers_ask_at_once_is_asked_at_once_and_answered_in_part(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, "--discover", "modern") as it:
        asked = await it.asked("two_questions")
        methods = {request["method"]: key for key, request in asked["inputRequests"].items()}
        assert methods.keys() == {"elicitation/create", "sampling/createMessage"}
        state = {"requestState": asked["requestState"]}
        part = {methods["elicitation/create"]: ADA}
        rest = await it.asked("two_questions", inputResponses=part, **state)
        assert list(rest["inputRequests"]) == [methods["sampling/createMessage"]]
        last = {methods["sampling/createMessage"]: COMPLETION}
        done = await it.execute("two_questions", inputResponses=last, **state).answer()
        assert list(map(json.loads, answer_of(done).texts)) == [ADA, COMPLETION]
        assert it.calls == 2  # its server speaks this era, too: one call, and its retry


async def test_what_does_not_fit_or_is_missing_is_asked_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        asked = await it.asked("string_id_question")
        (key,) = asked["inputRequests"]
        state = {"requestState": asked["requestState"]}
        for wrong in (
            None,
            {},
            7,
            {"other": ADA},
            {key: 7},
            {key: {"action": "accept", "content": {"name": 7}}},
            {key: {"action": "maybe"}},
        ):
            given = state if wrong is None else state | {"inputResponses": wrong}
            assert await it.asked("string_id_question", **given) == asked
        done = await it.execute("string_id_question", inputResponses={key: ADA}, **state).answer()
        assert json.loads(answer_of(done).text) == ADA


async def test_a_state_is_of_one_request_alone(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        asked = await it.asked("string_id_question")
        (key,) = asked["inputRequests"]
        given = {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        thief = it.world.client("bob")
        foreign = [
            it.execute("string_id_question", client=thief, **given),
            it.execute("two_questions", **given),
            it.execute("string_id_question", args={"n": 1}, **given),
            it.execute("string_id_question", **given | {"requestState": "0" * 32}),
            it.execute("string_id_question", **given | {"requestState": 7}),
            it.client.modern("tools/call", name="list_servers", arguments={}, **given),
        ]
        for exchange in foreign:
            status, error = await exchange.error()
            assert (status, error["code"]) == (400, -32602)
        assert it.calls == 1
        done = await it.execute("string_id_question", **given).answer()
        assert json.loads(answer_of(done).text) == ADA


async def test_only_what_that_very_request_says_that_it_can_is_asked(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        less: tuple[Json, ...] = ({}, {"sampling": {}}, {"elicitation": {"url": {}}})
        for can in less:
            answer = answer_of(await it.execute("string_id_question", can=can).answer())
            assert "answer with respond_to_elicitation" in answer.texts[0]
        # A retry may be able to do less than what it repeats.
        asked = await it.asked("string_id_question")
        retry = it.execute("string_id_question", can={}, requestState=asked["requestState"])
        answer = answer_of(await retry.answer())
        assert "answer with respond_to_elicitation" in answer.texts[0]


async def test_whoever_answers_by_tool_is_first_and_the_retry_gets_the_result(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as it:
        asked = await it.asked("string_id_question")
        (key,) = asked["inputRequests"]
        decline = {"request_id": key, "action": "decline"}
        assert await it.client.modern_call("respond_to_elicitation", **decline)
        given = {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        done = await it.execute("string_id_question", **given).answer()
        assert json.loads(answer_of(done).text) == {"action": "decline"}


async def test_a_state_is_dead_with_its_question_and_the_call_becomes_a_task(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path, question_timeout_ms=1000) as it:
        asked = await it.asked("string_id_question")
        state = {"requestState": asked["requestState"]}
        await until(lambda: not it.session.questions.has_open)
        await wait_all_tasks_blocked()
        _, error = await it.execute("string_id_question", **state).error()
        assert error["code"] == -32602
        (task,) = it.session.calls.tasks()
        assert task.tool == "string_id_question"


async def test_a_retry_that_has_lost_its_stream_may_be_sent_again(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with scene(tmp_path) as it:
        asked = await it.asked("question_then_wait", args={"file": str(go)})
        (key,) = asked["inputRequests"]
        given = {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        lost = it.execute("question_then_wait", args={"file": str(go)}, **given)
        await it.journal.wait_for_marker("answered")
        lost.drop()
        await until(lambda: lost.is_served)
        again = it.execute("question_then_wait", args={"file": str(go)}, **given)
        go.touch()
        assert json.loads(answer_of(await again.answer()).text) == ADA
        assert it.calls == 1


async def test_a_retry_that_is_not_sent_again_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LINGERS", 0.1)
    async with scene(tmp_path) as it:
        asked = await it.asked("question_then_wait", args={"file": str(tmp_path / "never")})
        (key,) = asked["inputRequests"]
        given = {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        lost = it.execute("question_then_wait", args={"file": str(tmp_path / "never")}, **given)
        await it.journal.wait_for_marker("answered")
        lost.drop()
        await it.journal.wait_for_method("notifications/cancelled")
        assert not it.session.calls.has_unsettled


async def test_what_comes_while_nobody_waits_is_kept_as_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LINGERS", 0.1)
    async with scene(tmp_path) as it:
        asked = await it.asked("string_id_question")
        (key,) = asked["inputRequests"]
        await it.client.modern_call("respond_to_elicitation", request_id=key, action="decline")
        await until(it.session.calls.tasks)
        (task,) = it.session.calls.tasks()
        await until(lambda: task.status.value == "completed")
        said = await it.client.modern_call("get_task_result", task_id=task.task_id)
        assert said == {"action": "decline"}


async def test_patience_runs_only_while_somebody_waits(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.execute("echo").answer()
        options = {"timeout_ms": 2000}
        asked = await it.asked("string_id_question", options=options)
        (key,) = asked["inputRequests"]
        await trio.sleep(2.1)
        given = {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        done = await it.execute("string_id_question", options=options, **given).answer()
        assert json.loads(answer_of(done).text) == ADA
        assert it.session.calls.tasks() == []


async def test_what_a_modern_server_asks_has_the_name_that_it_gave_it(tmp_path: Path) -> None:
    async with scene(tmp_path, "--discover", "modern") as it:
        asked = await it.asked("two_questions")
        assert asked["inputRequests"].keys() == {"q0", "q1"}


async def test_an_answer_may_come_before_its_question(tmp_path: Path) -> None:
    async with scene(tmp_path, "--discover", "modern") as it:
        early = {"q0": ADA, "q7": "of nothing"}
        done = await it.execute("string_id_question", inputResponses=early).answer()
        assert json.loads(answer_of(done).text) == ADA
        # One that does not fit is asked for.
        misfit = {"q0": {"action": "accept", "content": {}}}
        asked = await it.asked("string_id_question", inputResponses=misfit)
        assert list(asked["inputRequests"]) == ["q0"]


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_client_that_has_roots_is_asked_for_them(tmp_path: Path, era: str) -> None:
    can: Json = {"roots": {}}
    mine = {"roots": [{"uri": "file:///mine", "name": "Mine"}]}
    async with scene(tmp_path, *(("--discover", "modern") if era == "modern" else ())) as it:
        asked = await it.asked("roots", can=can)
        ((key, request),) = asked["inputRequests"].items()
        assert request == {"method": "roots/list", "params": {}}
        given = {"inputResponses": {key: mine}, "requestState": asked["requestState"]}
        done = await it.execute("roots", can=can, **given).answer()
        assert json.loads(answer_of(done).text) == mine
        # Others hear it, too, but whoever chooses by tool is asked no more.
        assert json.loads(answer_of(await it.execute("roots").answer()).text) == mine
        await it.client.modern_call("set_roots", roots=[])
        done = await it.execute("roots", can=can).answer()
        assert json.loads(answer_of(done).text) == {"roots": []}


async def test_what_is_no_roots_changes_nothing(tmp_path: Path) -> None:
    can: Json = {"roots": {}}
    async with scene(tmp_path) as it:
        asked = await it.asked("roots", can=can)
        (key,) = asked["inputRequests"]
        given = {"inputResponses": {key: {"roots": 5}}, "requestState": asked["requestState"]}
        done = await it.execute("roots", can=can, **given).answer()
        assert json.loads(answer_of(done).text) == {"roots": []}


async def test_who_waits_for_a_task_is_asked_its_question(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        options = {"timeout_ms": 0}
        task = answer_of(await it.execute("string_id_question", options=options).answer()).task_id
        can = {f"{META}clientCapabilities": ASKS}
        named: Json = {"name": "get_task_result", "arguments": {"task_id": task}}
        asked = (await it.client.modern("tools/call", meta=can, **named).answer())["result"]
        (key,) = asked["inputRequests"]
        named |= {"inputResponses": {key: ADA}, "requestState": asked["requestState"]}
        done = await it.client.modern("tools/call", meta=can, **named).answer()
        assert json.loads(answer_of(done).text) == ADA


async def test_a_page_that_a_server_wants_to_have_opened_first_is_asked_for(tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with scene(tmp_path) as it:
        asked = await it.asked("needs_page", args={"file": str(go)})
        ((key, question),) = asked["inputRequests"].items()
        page = {"mode": "url", "url": "https://x.test/p", "message": "open it"}
        assert question == {"method": "elicitation/create", "params": page}
        given = {
            "inputResponses": {key: {"action": "accept"}},
            "requestState": asked["requestState"],
        }
        retry = it.execute("needs_page", args={"file": str(go)}, **given)
        await until(lambda: not it.session.questions.has_open)
        assert it.calls == 1  # until the server says that it is done
        go.touch()
        await it.execute("page_is_done").answer()
        assert answer_of(await retry.answer()).text == "it was opened"
        assert it.calls == 3


async def test_a_page_that_nobody_opens_is_the_error_that_it_was(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        args = {"file": str(tmp_path / "never")}
        asked = await it.asked("needs_page", args=args)
        (key,) = asked["inputRequests"]
        no = {key: {"action": "decline"}}
        given: Json = {"inputResponses": no, "requestState": asked["requestState"]}
        retry = it.execute("needs_page", args=args, **given)
        error = answer_of(await retry.answer()).error
        assert error["details"]["code"] == -32042
        assert it.calls == 1


@pytest.mark.parametrize("flags", [(), ("--discover", "modern")], ids=["handshake", "modern"])
async def test_what_a_client_sends_along_reaches_the_server_and_what_is_the_protocol_s_does_not(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    async with scene(tmp_path, *flags) as it:
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        mine = {"traceparent": parent, "tracestate": "a=b", "example.com/k": {"v": [1]}}
        level = {f"{META}logLevel": "warning"}
        meta = {**mine, **level, f"{META}clientCapabilities": ASKS, "progressToken": "p"}
        arguments = {"server": "raw", "tool": "echo"}
        call = it.client.modern("tools/call", meta=meta, name="execute_tool", arguments=arguments)
        await call.answer()
        (reached,) = it.journal.of("tools/call")
        sent = reached["params"]["_meta"]
        assert {key: sent[key] for key in mine} == mine
        assert sent["progressToken"] != "p"
        protocol = {key for key in sent if key.startswith(META)}
        assert protocol == (set(modern_meta(MODERN, {})) | level.keys() if flags else set())
        if flags:
            assert sent[f"{META}logLevel"] == "warning"


# -- over pipes ------------------------------------------------------------------------------------


async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": f"Ada, {params.message}"})


@pytest.mark.parametrize("flags", [(), ("--discover", "modern")], ids=["handshake", "modern"])
async def test_a_client_of_the_sdk_answers_over_pipes_whatever_its_server_speaks(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    async with open_emceepee(
        tmp_path,
        {"raw": raw(*flags)},
        era="modern",
        callbacks={"elicitation_callback": elicit},
    ) as emceepee:
        result = await emceepee.client.call_tool(
            "execute_tool", {"server": "raw", "tool": "string_id_question"}
        )
        (block, *_) = result.content
        assert block.type == "text"
        assert json.loads(block.text)["content"] == {"name": "Ada, name?"}
