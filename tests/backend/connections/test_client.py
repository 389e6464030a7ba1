"""Requests: answers as they came, questions on the way, progress, and cancelling."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from mcp import MCPError

from emceepee_trio.backend.connections import client as module
from emceepee_trio.backend.connections.client import OUTBOX
from emceepee_trio.config import Retry
from emceepee_trio.model.json.long.text import LongText
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from play import coded
from recording import Running, running

pytestmark = QUIET

GUARD = 60
ERAS = {"handshake": raw(), "modern": raw("--discover", "modern")}
both_eras = pytest.mark.parametrize("era", ERAS)
ACCEPT = {"action": "accept", "content": {"name": "Bob"}}
SAMPLE = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def entry(era: str, *flags: object) -> dict[str, Any]:
    return ERAS[era] | {"args": [*ERAS[era]["args"], *map(str, flags)]}


def texts(result: dict[str, Any]) -> list[Any]:
    return [json.loads(block["text"]) for block in result["content"]]


@both_eras
async def test_what_a_backend_answers_is_not_touched(era: str) -> None:
    with trio.fail_after(GUARD):
        async with running(entry(era)) as it:
            echo = await it.call("echo", text="grüße 🦑", n=[1, None, 2.5])
            assert echo.pop("resultType", "complete") == "complete"
            assert echo == {
                "content": [{"type": "text", "text": "grüße 🦑", "x-vendor": {"block": 1}}],
                "_meta": {"vendor/trace": "t-1"},
                "x-vendor": "top",
                "x-arguments": {"text": "grüße 🦑", "n": [1, None, 2.5]},
            }
            odd = await it.call("unknown_content")
            assert odd["content"][0]["type"] == "video"
            wrong = await it.call("schema_mismatch")
            assert wrong["structuredContent"] == {"n": "not an integer"}
            with pytest.raises(MCPError) as caught:
                await it.call("rpc_error", code=-32000, message="Connection closed?", data=[1])
            assert caught.value.error.code == -32000
            assert caught.value.error.message == "Connection closed?"
            assert caught.value.error.data == [1]
            assert it.backend.client is not None


# -- questions on the way ------------------------------------------------------------------------


@both_eras
async def test_a_backend_asks_for_everything_there_is_to_ask(era: str) -> None:
    with trio.fail_after(GUARD):
        async with running(entry(era)) as it, trio.open_nursery() as nursery:
            it.host.told_roots = [{"uri": "file:///srv", "name": "srv"}]
            assert texts(await it.call("roots")) == [{"roots": it.host.told_roots}]

            async def call() -> None:
                assert texts(await it.call("two_questions")) == [ACCEPT, SAMPLE]

            nursery.start_soon(call)
            await it.host.question(2)  # both at once: neither waits for the other
            for question in it.host.questions:
                question.respond(ACCEPT if question.kind == "elicitation" else SAMPLE)
    form = next(q for q in it.host.questions if q.kind == "elicitation")
    assert form.params["x-vendor"] == "form"
    assert form.params["requestedSchema"]["required"] == ["name"]


@both_eras
async def test_a_question_that_is_refused_ends_the_call_in_the_way_of_its_era(era: str) -> None:
    no = MCPError(code=-32600, message="nobody here can")
    with trio.fail_after(GUARD):
        async with running(entry(era)) as it, trio.open_nursery() as nursery:

            async def call() -> None:
                if era == "handshake":  # the backend gets the error and goes on
                    error = {"code": -32600, "message": "nobody here can"}
                    assert texts(await it.call("sample_question")) == [{"error": error}]
                else:  # it has no way of hearing an error
                    with pytest.raises(MCPError, match="nobody here can"):
                        await it.call("sample_question")

            nursery.start_soon(call)
            (await it.host.question()).respond(no)


async def test_in_the_modern_era_a_refusal_withdraws_the_other_questions() -> None:
    with trio.fail_after(GUARD):
        async with running(entry("modern")) as it, trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(MCPError, match="no model"):
                    await it.call("two_questions")

            nursery.start_soon(call)
            await it.host.question(2)
            kinds = {question.kind: question for question in it.host.questions}
            kinds["sampling"].respond(MCPError(code=1, message="no model"))
            await it.host.until(lambda: kinds["elicitation"].abandoned)
            assert kinds["elicitation"].abandoned == "call_ended"


async def test_in_the_modern_era_a_form_that_expires_is_cancelled() -> None:
    with trio.fail_after(GUARD):
        async with running(entry("modern")) as it, trio.open_nursery() as nursery:

            async def call() -> None:
                assert texts(await it.call("string_id_question")) == [{"action": "cancel"}]

            nursery.start_soon(call)
            (await it.host.question()).respond(MCPError(code=1, message="nobody answered"))


@both_eras
@pytest.mark.parametrize("how", ["exit", "removed", "reconnect"])
async def test_questions_that_are_open_at_the_end_hear_why(era: str, how: str) -> None:
    with trio.fail_after(GUARD):
        config = entry(era) | {"restart": Retry(base_delay_ms=60_000)}
        async with running(config) as it, trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(MCPError, match="Connection closed"):
                    await it.call("string_id_question")

            nursery.start_soon(call)
            question = await it.host.question()
            if how == "exit":
                with pytest.raises(MCPError):
                    await it.call("exit")
            elif how == "removed":
                it.backend.leave("removed", 5)
            else:
                await it.backend.reconnect()
            await it.host.until(lambda: question.abandoned)
    reasons = {"exit": "server_disconnected", "reconnect": "server_reconnected"}
    assert question.abandoned == reasons.get(how, "server_removed")


async def test_a_handshake_backend_withdraws_its_question(tmp_path: Path) -> None:
    with trio.fail_after(GUARD):
        async with running(entry("handshake")) as it, trio.open_nursery() as nursery:

            async def call() -> None:
                await it.call("withdraw_question", file=str(tmp_path / "go"))

            nursery.start_soon(call)
            question = await it.host.question()
            (tmp_path / "go").touch()
            await it.host.until(lambda: question.abandoned)
            assert question.abandoned == "withdrawn_by_server"


@pytest.mark.parametrize(
    "asked",
    [
        ["not a map"],
        {"q": "not a request"},
        {"q": {"method": ["x"], "params": 7}},
        {"q": {"method": "elicitation/create", "params": "message"}},
        {"q": {"method": "sampling/createMessage"}},
        {"q": {}},
    ],
)
async def test_questions_of_any_odd_shape_fail_the_call_and_nothing_else(asked: Any) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call" or "inputResponses" in request.message["params"]:
            return False
        result = {"resultType": "input_required", "inputRequests": asked}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            if isinstance(asked, dict) and "elicitation/create" in str(asked):
                await it.call("echo")  # to a form the answer is "cancel"
            else:
                with pytest.raises(MCPError):
                    await it.call("echo")
            assert it.backend.client is not None


async def test_a_backend_that_never_stops_asking_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        result: dict[str, Any] = {"resultType": "input_required", "requestState": "s"}
        if request.message["params"]["arguments"]:
            result["inputRequests"] = {"q": {"method": "roots/list"}}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return True

    monkeypatch.setattr(module, "ROUNDS", 3)
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            for arguments in ({"roots": 1}, {}):
                with pytest.raises(MCPError, match="more than 3 times"):
                    await it.call("echo", **arguments)
            calls = [request.message["params"] for request in server.of("tools/call")]
    assert len(calls) == 8
    assert calls[1]["inputResponses"] == {"q": {"roots": []}}
    assert calls[1]["requestState"] == "s"
    assert "inputResponses" not in calls[5]
    assert calls[5]["requestState"] == "s"


async def test_long_texts_are_left_in_the_last_of_the_rounds_alone() -> None:
    long = "grüße 🦑 " * 10_000

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call":
            return False
        result: dict[str, Any] = {"content": [{"type": "text", "text": long}]}
        if "inputResponses" not in request.message["params"]:
            form = {"message": long, "requestedSchema": {"type": "object", "properties": {}}}
            asked = {"q": {"method": "elicitation/create", "params": form}}
            result = {"resultType": "input_required", "inputRequests": asked, "requestState": long}
        await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            client = await it.backend.connection()
            params = {"name": "echo", "arguments": {}}

            async def call(*, leaves_long: bool) -> None:
                result = await client.request("tools/call", params, leaves_long=leaves_long)
                said = result["content"][0]["text"]
                assert isinstance(said, LongText) is leaves_long
                assert said[:] == long

            for n, leaves_long in enumerate((False, True), 1):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(partial(call, leaves_long=leaves_long))
                    question = await it.host.question(n)
                    assert question.params["message"] == long
                    question.respond(ACCEPT)
            calls = [request.message["params"] for request in server.of("tools/call")]
    assert [call.get("requestState") for call in calls] == [None, long] * 2


async def test_a_handshake_backend_may_use_the_modern_words_for_something_else() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call":
            result = {"resultType": "input_required", "content": []}
            await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": result})
        return request.method == "tools/call"

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            assert await it.call("echo") == {"resultType": "input_required", "content": []}


async def test_a_modern_backend_is_asked_in_the_name_of_a_client_that_answers_for_itself() -> None:
    wanted = {"resultType": "input_required", "inputRequests": {"q": {"method": "roots/list"}}}

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call":
            await reply.json({"jsonrpc": "2.0", "id": request.message["id"], "result": wanted})
        return request.method == "tools/call"

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", spoil=spoil)) as server,
            running({"url": server.url}) as it,
        ):
            params = {"name": "echo", "inputResponses": {"early": {}}, "_meta": {"mine": 1}}
            client = await it.backend.connection()
            asked = client.request("tools/call", params, capabilities={"roots": {}})
            assert await asked == wanted
            (call,) = server.of("tools/call")
    sent = call.message["params"]
    assert sent["inputResponses"] == {"early": {}}
    assert sent["_meta"].pop("mine") == 1
    assert sent["_meta"] == module.modern_meta("2026-07-28", {"roots": {}})


@pytest.mark.parametrize("streams", [True, False])
async def test_whoever_asks_hears_of_the_stream_in_which_the_answer_comes(streams: bool) -> None:
    heard: list[str] = []
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(streams=streams)) as server,
            running({"url": server.url}) as it,
        ):
            client = await it.backend.connection()
            await client.request("tools/call", {"name": "echo"}, on_stream=heard.append)
    assert {*heard} == ({"begins"} if streams else set())


# -- cancelling ----------------------------------------------------------------------------------


@both_eras
async def test_cancelling_a_call_tells_the_child(era: str, journal: Journal) -> None:
    with trio.fail_after(GUARD):
        async with running(entry(era, *journal.flags)) as it, trio.open_nursery() as nursery:
            nursery.start_soon(it.call, "slow")
            started = await journal.wait_for_marker("slow started")
            nursery.cancel_scope.cancel()
    told = await journal.wait_for_method("notifications/cancelled")
    assert told["params"]["requestId"] == started["id"]


@pytest.mark.parametrize("streams", [False, True])
async def test_over_http_cancelling_is_a_notification_in_the_handshake_era(streams: bool) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(streams=streams)) as server,
            running({"url": server.url}) as it,
        ):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(it.call, "never")
                call = await server.wait_for("tools/call")
                nursery.cancel_scope.cancel()
            told = await server.wait_for("notifications/cancelled")
            assert told.message["params"]["requestId"] == call.message["id"]
            await it.call("echo")


@pytest.mark.parametrize("streams", [False, True])
async def test_over_http_cancelling_is_hanging_up_in_the_modern_era(streams: bool) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer("modern", streams)) as server,
            running({"url": server.url}) as it,
        ):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(it.call, "never")
                call = await server.wait_for("tools/call")
                assert not call.aborted.is_set()
                nursery.cancel_scope.cancel()
            await call.aborted.wait()
            await it.call("echo")
            assert not server.of("notifications/cancelled")


async def test_a_courtesy_to_a_child_that_does_not_read_blocks_nobody() -> None:
    deaf = coded("hello()\nwhile True: time.sleep(60)") | {"era": "handshake"}

    async def fill(it: Running) -> None:
        await it.call("echo", text="x" * 1_000_000)  # much more than a pipe holds

    with trio.fail_after(GUARD):
        async with running(deaf) as it, trio.open_nursery() as nursery:
            client = await it.backend.connection()
            nursery.start_soon(fill, it)
            await trio.testing.wait_all_tasks_blocked(0.05)
            for _ in range(3):  # cancelled while they wait to be written
                with trio.move_on_after(0.01) as scope:
                    await it.call("echo")
                assert scope.cancelled_caught
            for _ in range(2 * OUTBOX):
                client.notify("notifications/roots/list_changed")
            nursery.cancel_scope.cancel()


# -- progress ------------------------------------------------------------------------------------


@both_eras
async def test_progress_comes_in_order_and_before_the_answer(era: str) -> None:
    seen: list[Any] = []
    with trio.fail_after(GUARD):
        async with running(entry(era)) as it:
            client = await it.backend.connection()
            params = {"name": "progress", "arguments": {"n": 100}}
            result = await client.request("tools/call", params, on_progress=seen.append)
            assert len(seen) == 100
            assert [said["progress"] for said in seen] == list(range(1, 101))
            assert seen[-1]["message"] == "step 100"
            assert result["content"][0]["text"] == "progressed 100 times"
            assert not client.callbacks.progress
            # Who does not listen gets no token to report to.
            silent = await it.call("progress")
            assert silent["content"][0]["text"] == "progressed 0 times"
