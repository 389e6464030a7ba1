"""Clients of the handshake era are asked themselves what servers ask."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.client.context import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)
from trio.testing import wait_all_tasks_blocked

from asgi_client import Client, Exchange, Json
from asgi_world import World, listening, open_world
from emceepee_client import Answer, open_emceepee
from emceepee_trio.config import Config, Server
from emceepee_trio.config.settings import RelaySettings
from emceepee_trio.config.treatment import ServerRelay, ViewRelay
from fake_backends import raw, until

ASKS: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
ADA = {"action": "accept", "content": {"name": "Ada"}}


@asynccontextmanager
async def asking(
    *flags: Any,
    relay: ServerRelay | None = None,
    views: Mapping[str, ViewRelay] | None = None,
    **capabilities: Json,
) -> AsyncGenerator[tuple[World, Client]]:
    server = Server(name="raw", **raw(*flags), relay=relay or ServerRelay())
    with trio.fail_after(60):
        general = RelaySettings(views=views or {})
        async with open_world(Config(servers=(server,), relay=general)) as world:
            yield world, await world.joined(**(capabilities or ASKS))


def execute(client: Client, tool: str, args: Json | None = None, **options: Any) -> Exchange:
    return client.tool("execute_tool", server="raw", tool=tool, args=args or {}, **options)


async def said(exchange: Exchange) -> Answer:
    return Answer.of((await exchange.answer())["result"])


async def test_the_question_of_a_call_travels_with_its_answer() -> None:
    async with asking() as (_, client):
        call = execute(client, "string_id_question")
        asked = await call.message()
        assert asked["method"] == "elicitation/create"
        assert asked["params"]["message"] == "name?"
        assert len(asked["id"]) >= 20
        await client.reply(asked, ADA)
        answer = await said(call)
        assert json.loads(answer.text) == ADA
        assert client.own.session.calls.tasks() == []
        await client.reply(asked, {"action": "decline"})  # it is late, and means nothing


async def test_what_servers_ask_at_once_is_asked_at_once() -> None:
    async with asking() as (_, client):
        call = execute(client, "two_questions")
        asked = [await call.message(0), await call.message(1)]
        methods = {"elicitation/create": ADA, "sampling/createMessage": None}
        assert {each["method"] for each in asked} == methods.keys()
        completion = {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"}
        methods["sampling/createMessage"] = completion
        for each in asked:
            await client.reply(each, methods[each["method"]])
        assert list(map(json.loads, (await said(call)).texts)) == [ADA, completion]


async def test_what_a_client_does_not_say_that_it_can_is_for_the_tools() -> None:
    async with asking(elicitation={"url": {}}, sampling={}) as (_, client):
        answer = await said(execute(client, "string_id_question"))
        assert answer.task_id
        assert "answer with respond_to_elicitation" in answer.texts[0]
        (pending,) = answer.pending["elicitations"]
        assert "relayed" not in pending


async def test_an_operator_can_have_it_answered_by_tool_only() -> None:
    only = ServerRelay(elicitation="tools")
    async with asking(relay=only) as (_, client):
        assert (await said(execute(client, "string_id_question"))).task_id
        sample = execute(client, "sample_question")
        assert (await sample.message())["method"] == "sampling/createMessage"


async def test_it_may_be_so_for_one_view_unless_a_server_has_it_otherwise() -> None:
    views = {"tools": ViewRelay(elicitation="tools"), "native": ViewRelay(sampling="tools")}
    async with asking(views=views) as (_, client):
        assert "result" in await execute(client, "string_id_question").message()
        sample = execute(client, "sample_question")
        assert (await sample.message())["method"] == "sampling/createMessage"
    async with asking(views=views, relay=ServerRelay(elicitation="auto")) as (_, client):
        asked = await execute(client, "string_id_question").message()
        assert asked["method"] == "elicitation/create"


async def test_a_client_that_refuses_leaves_the_question_to_the_tools() -> None:
    async with asking() as (_, client):
        call = execute(client, "string_id_question")
        await client.reply(await call.message(), code=-1, message="no dialog here")
        answer = await said(call)
        assert "answer with respond_to_elicitation" in answer.texts[0]
        (pending,) = answer.pending["elicitations"]
        assert "relayed" not in pending
        given = {"request_id": pending["requestId"], **ADA}
        await client.call("respond_to_elicitation", **given)
        result = await client.call("get_task_result", task_id=answer.task_id)
        assert json.loads(result["content"][0]["text"]) == ADA


async def test_who_answers_by_tool_is_told_first_and_the_dialog_is_withdrawn() -> None:
    async with asking() as (_, client):
        call = execute(client, "string_id_question")
        asked = await call.message()
        listed = await client.call("get_elicitations")
        (question,) = json.loads(listed["content"][0]["text"])["elicitations"]
        assert question["relayed"] is True
        given = {"request_id": question["requestId"], "action": "decline"}
        await client.call("respond_to_elicitation", **given)
        over = await call.message(1)
        assert over["method"] == "notifications/cancelled"
        assert over["params"]["requestId"] == asked["id"]
        assert json.loads((await said(call)).text) == {"action": "decline"}


async def test_a_server_that_withdraws_its_question_withdraws_the_dialog(tmp_path: Path) -> None:
    async with asking() as (_, client):
        go = tmp_path / "go"
        call = execute(client, "withdraw_question", {"file": str(go)})
        asked = await call.message()
        go.touch()
        assert (await said(call)).text == "withdrawn"
        _, told, _ = call.messages
        assert told["method"] == "notifications/cancelled"
        assert told["params"]["requestId"] == asked["id"]


async def test_the_question_of_a_task_is_asked_on_the_standalone_stream() -> None:
    async with asking() as (_, client):
        task = (await said(execute(client, "string_id_question", timeout_ms=0))).task_id
        await client.call("await_activity")
        (question,) = client.own.session.questions.open("elicitation")
        assert not question.is_relayed  # nobody would hear it
        stream = await listening(client)
        asked = await stream.message()
        assert asked["method"] == "elicitation/create"
        assert question.is_relayed
        # Nobody is told to answer for him.
        early = await said(client.tool("get_task_result", task_id=task, timeout_ms=0))
        assert "waits for the user" in early.error["message"]
        assert "respond_to" not in early.error["message"]
        assert early.pending["elicitations"][0]["relayed"] is True
        await client.reply(asked, ADA)
        result = await client.call("get_task_result", task_id=task)
        assert json.loads(result["content"][0]["text"]) == ADA


@pytest.mark.parametrize("is_read", [True, False])
async def test_who_joins_again_is_asked_again_what_he_has_read_and_gets_the_rest(
    is_read: bool,
) -> None:
    async with asking() as (_, client):
        call = execute(client, "string_id_question")
        await call.until(lambda: call.primed)
        if not is_read:
            call.stop_reading(ghost=True)
        await until(lambda: client.own.session.questions.has_open)
        (question,) = client.own.session.questions.open("elicitation")
        if is_read:
            await call.message()
        await wait_all_tasks_blocked()
        await client.rejoin()
        stream = await listening(client)
        asked = await stream.message()
        assert asked["method"] == "elicitation/create"
        assert question.is_relayed
        if is_read:
            assert asked["id"] != call.messages[0]["id"]
            await client.reply(call.messages[0], {"action": "decline"})
        await client.reply(asked, ADA)
        (task,) = client.own.session.calls.tasks()
        result = await client.call("get_task_result", task_id=task.task_id)
        assert json.loads(result["content"][0]["text"]) == ADA
        assert len(stream.messages) == 1
        call.drop()


async def test_who_comes_back_without_dialogs_has_the_question_for_the_tools() -> None:
    async with asking() as (_, client):
        call = execute(client, "string_id_question")
        await call.message()
        client.capabilities = {}
        await client.rejoin()
        stream = await listening(client)
        (question,) = client.own.session.questions.open("elicitation")
        assert not question.is_relayed
        assert stream.messages == []


async def test_a_client_is_asked_for_its_roots_once_and_when_they_change() -> None:
    async with asking(roots={"listChanged": True}) as (_, client):
        stream = await listening(client)
        asked = await stream.message()
        assert asked["method"] == "roots/list"
        assert "params" not in asked
        changed = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        await client.post(changed).complete()  # more than once, while it is asked
        await client.post(changed).complete()
        bad = {"uri": "https://x.test"}
        await client.reply(asked, {"roots": [{"uri": "file:///old", "name": "Old"}, bad]})
        again = await stream.message(1)
        assert [m["method"] for m in stream.messages] == ["roots/list"] * 2
        roots = await client.call("get_roots")
        old = {"roots": [{"uri": "file:///old", "name": "Old"}]}
        assert json.loads(roots["content"][0]["text"]) == old
        await client.reply(again, {"roots": [{"uri": "file:///new"}]})
        told = await said(execute(client, "roots"))
        assert json.loads(told.text) == {"roots": [{"uri": "file:///new"}]}
        await client.call("set_roots", roots=[{"uri": "file:///mine"}])
        await client.post(changed).complete()
        await client.reply(await stream.message(2), {"roots": [{"uri": "file:///not"}]})
        told = await said(execute(client, "roots"))
        assert json.loads(told.text) == {"roots": [{"uri": "file:///mine"}]}


@pytest.mark.parametrize(
    "answer", [{"result": {"roots": 7}}, {"error": {"code": -1, "message": "?"}}]
)
async def test_a_client_that_cannot_say_its_roots_has_those_that_are_configured(
    answer: Json,
) -> None:
    async with asking(roots={}) as (_, client):
        stream = await listening(client)
        asked = await stream.message()
        await client.post({"jsonrpc": "2.0", "id": asked["id"], **answer}).complete()
        told = await said(execute(client, "roots"))
        assert json.loads(told.text) == {"roots": []}
        assert len(stream.messages) == 1


# -- over pipes ------------------------------------------------------------------------------------


async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": f"Ada, {params.message}"})


async def sample(
    context: ClientRequestContext, params: CreateMessageRequestParams
) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(text="!"), model="m")


@pytest.mark.parametrize("flags", [(), ("--discover", "modern")], ids=["handshake", "modern"])
async def test_a_client_of_the_sdk_answers_over_pipes_whatever_its_server_speaks(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    dialogs = {"elicitation_callback": elicit, "sampling_callback": sample}
    async with open_emceepee(tmp_path, {"raw": raw(*flags)}, callbacks=dialogs) as emceepee:
        answer = await emceepee.execute("raw", "two_questions")
        form, completion = map(json.loads, answer.texts)
        assert form["content"] == {"name": "Ada, name?"}
        assert completion["content"]["text"] == "!"
        task = await emceepee.start_task("raw", "string_id_question")
        result = await emceepee.call("get_task_result", task_id=task)
        assert json.loads(result.text)["content"] == {"name": "Ada, name?"}
