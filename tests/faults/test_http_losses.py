"""Servers behind a URL that are killed, come back, forget, or break off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from emceepee_client import Emceepee, Open
from fake_backends import Journal
from http_child import open_http_child
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from like import Like
from telling import data, drain, kinds, life

pytestmark = QUIET

SOON: dict[str, Any] = {"reconnect": {"base_delay_ms": 10, "max_delay_ms": 20}}
LATER: dict[str, Any] = {"reconnect": {"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000}}
LOST = {
    "code": "TOOL_ERR_SERVER_DISCONNECTED",
    "message": Like("server 'web' was lost before it answered tools/call; .*"),
    "details": {"may_have_run": True},
}


def without_tries(lived: list[str]) -> list[str]:
    """How often it was tried again depends on how long the server took to start."""
    found: list[str] = []
    for kind in lived:
        if kind != "server_reconnecting" or found[-1:] != [kind]:
            found.append(kind)
    return found


BACK = ["server_disconnected", "server_reconnecting", "server_reconnected"]


async def back(emceepee: Emceepee) -> Any:
    return (await emceepee.event("server_reconnected", name="web"))["data"]


@pytest.mark.parametrize("forget", [False, True])
async def test_one_that_is_killed_with_tasks_and_questions(
    connect: Open, forget: bool, tmp_path: Path
) -> None:
    """It streams the answer to one call, and owes one to another."""
    async with (
        open_http_child(tmp_path) as web,
        connect({"web": {"url": web.url} | SOON}) as emceepee,
    ):
        journal = Journal(web.journal)
        await emceepee.connected("web")
        finished = await emceepee.start_task("web", "echo", {"kept": 1})
        await emceepee.event("task_completed", taskId=finished)
        silent = await emceepee.start_task("web", "never")
        asking = await emceepee.start_task("web", "ask")
        form = (await emceepee.event("elicitation_request"))["data"]["requestId"]
        await journal.wait_for(lambda e: e.get("params", {}).get("name") == "never")
        await web.kill(forget=forget)
        lost = await emceepee.event("server_disconnected", name="web")
        assert lost["data"]["wasIntentional"] is False
        assert "cannot reach" in lost["data"]["reason"]
        for task in (silent, asking):
            assert await emceepee.fails("get_task_result", task_id=task) == LOST
        await web.start()
        told = await back(emceepee)
        assert told["type"] == ("restart" if forget else "network_blip")
        assert told["attempts"] == len(data(emceepee, "web", "server_reconnecting"))
        assert (told["invalidatedTasks"], told["invalidatedElicitations"]) == (2, 1)
        assert told["invalidatedSampling"] == 0
        await drain(emceepee)
        assert without_tries(life(emceepee, "web")) == BACK
        attempts = [tried["attempt"] for tried in data(emceepee, "web", "server_reconnecting")]
        assert attempts == list(range(1, len(attempts) + 1))
        failed = [(t["taskId"], t["reason"]) for t in data(emceepee, "web", "task_failed")]
        assert sorted(failed) == sorted((t, "server_disconnected") for t in (silent, asking))
        expired = {"requestId": form, "reason": "server_disconnected"}
        assert data(emceepee, "web", "elicitation_expired") == [expired]
        assert kinds(emceepee, "web")[-1] == "server_reconnected"
        answer = await emceepee.call("get_task_result", task_id=finished)
        assert (answer.text, answer.pending) == ('{"kept": 1}', {})
        assert (await emceepee.execute("web", "echo", {"a": 2})).text == '{"a": 2}'
        # Nobody keeps a session there that nobody uses.
        assert len(web.sessions.read_text("utf-8").splitlines()) == 1
        assert len(journal.of("tools/call")) == 4  # none was repeated


async def test_one_in_the_middle_of_a_call(connect: Open, tmp_path: Path) -> None:
    """Who waits is told at once: the next try is an hour away."""
    async with (
        open_http_child(tmp_path) as web,
        connect({"web": {"url": web.url} | LATER}) as emceepee,
    ):
        await emceepee.connected("web")
        answers = []

        async def call() -> None:
            answers.append(await emceepee.execute("web", "never"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await Journal(web.journal).wait_for_method("tools/call")
            await web.kill()
        (answer,) = answers
        assert answer.error == LOST
        assert "server_disconnected" in [event["type"] for event in answer.events]
        await emceepee.event("server_reconnecting", name="web", attempt=1)
        await web.start()
        again = await emceepee.execute("web", "echo", {"a": 1})  # wants the next try now
        assert again.text == '{"a": 1}'
        await back(emceepee)
        assert life(emceepee, "web") == BACK


async def test_one_that_only_listens_is_missed_without_a_call(
    connect: Open, tmp_path: Path
) -> None:
    """And what was set and subscribed there is so again."""
    async with (
        open_http_child(tmp_path, "--listens") as web,
        connect({"web": {"url": web.url} | SOON}) as emceepee,
    ):
        journal = Journal(web.journal)
        await emceepee.connected("web")
        await emceepee.says("set_log_level", server="web", level="warning")
        await emceepee.says("subscribe_resource", server="web", uri="raw://text")
        await journal.wait_for_method("GET")
        before = len(journal.entries())
        await web.kill(forget=True)
        await emceepee.event("server_disconnected", name="web")
        await web.start()
        assert (await back(emceepee))["type"] == "restart"
        again = journal.entries()[before:]
        levels = [e["params"] for e in again if e.get("method") == "logging/setLevel"]
        uris = [e["params"]["uri"] for e in again if e.get("method") == "resources/subscribe"]
        assert levels == [{"level": "warning"}]
        assert uris == ["raw://text"]
        await drain(emceepee)
        assert without_tries(life(emceepee, "web")) == BACK


async def test_a_port_that_opens_late(connect: Open, tmp_path: Path) -> None:
    """Tried ever more rarely, then connected, for the first time."""
    reconnect = {"base_delay_ms": 50, "max_delay_ms": 10_000, "jitter": 0.1}
    async with (
        open_http_child(tmp_path, start=False) as web,
        connect({"web": {"url": web.url, "reconnect": reconnect}}) as emceepee,
    ):
        error = await emceepee.fails("execute_tool", server="web", tool="echo")
        assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
        assert error["message"] == Like(".*cannot reach.*next try in .* s, await_activity .*")
        assert 0 <= error["details"]["next_retry_ms"] <= 10_000
        await emceepee.event("server_reconnecting", attempt=4)
        await web.start()
        await emceepee.connected("web")
        assert (await emceepee.execute("web", "echo", {})).text == "{}"
        tries = data(emceepee, "web", "server_reconnecting")
        assert [one["attempt"] for one in tries] == list(range(1, len(tries) + 1))
        for n, one in enumerate(tries):
            assert one["nextRetryMs"] <= 55 * 2**n
        assert tries[3]["nextRetryMs"] > tries[0]["nextRetryMs"]
        await drain(emceepee)
        told = life(emceepee, "web")
        assert told == ["server_reconnecting"] * len(tries) + ["server_connected"]


async def test_a_session_that_is_forgotten_is_nothing_to_the_caller(connect: Open) -> None:
    ran: list[bool] = []

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call":
            known = request.headers.get("mcp-session-id") in server.sessions
            ran.append(known)
        return False

    server = HttpServer(spoil=spoil)
    async with open_http_server(server):
        async with connect({"web": {"url": server.url} | LATER}) as emceepee:
            await emceepee.execute("web", "echo")  # whatever belongs to a handshake is done by then
            server.sessions.clear()
            answer = await emceepee.execute("web", "echo", {"a": 1})
            assert answer.text == '{"a": 1}'
            assert ran == [True, False, True]
            assert (await back(emceepee))["type"] == "restart"
            await drain(emceepee)
            assert life(emceepee, "web") == BACK
            assert len(server.sessions) == 1
        assert not server.sessions  # which we end when we leave


async def test_an_answer_that_breaks_off_fails_only_its_call(connect: Open) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call" or request.message["params"]["name"] != "half":
            return False
        await reply.events()
        note = {"jsonrpc": "2.0", "method": "notifications/vendor/half", "params": {}}
        await reply.event(note)
        await reply.hang_up()
        return True

    server = HttpServer(spoil=spoil)
    async with open_http_server(server), connect({"web": {"url": server.url}}) as emceepee:
        other = await emceepee.start_task("web", "slow")
        await server.wait_for("tools/call", 1)
        error = await emceepee.fails("execute_tool", server="web", tool="half")
        assert error == {
            "code": "TOOL_ERR_SERVER_DISCONNECTED",
            "message": Like("server 'web' broke off before it answered tools/call; .*"),
            "details": {"may_have_run": True},
        }
        server.release.set()
        assert (await emceepee.task_over(other))["status"] == "completed"
        await drain(emceepee)
        assert life(emceepee, "web") == []
        names = [r.message["params"]["name"] for r in server.of("tools/call")]
        assert names == ["slow", "half"]


async def test_one_that_accepts_and_says_nothing_any_more_is_degraded(connect: Open) -> None:
    """Ten seconds of real time, and well again with its next answer."""
    silent = False

    async def spoil(request: Request, reply: Reply) -> bool:
        if silent and "id" in request.message:
            await trio.sleep_forever()
        return False

    server = HttpServer(spoil=spoil)
    settings = {"health": {"interval_ms": 1000}}
    async with (
        open_http_server(server),
        connect({"web": {"url": server.url} | LATER}, **settings) as emceepee,
    ):
        await emceepee.connected("web")
        silent = True
        await server.wait_for("ping")
        # Who calls it meanwhile waits; nobody else does.
        silent_call = await emceepee.start_task("web", "echo")
        told = (await emceepee.event("server_health_degraded"))["data"]
        assert told == {
            "name": "web",
            "consecutiveFailures": 1,
            "lastError": "no answer to ping within 10 s",
        }
        assert (await emceepee.status("web"))["server"]["status"] == "degraded"
        silent = False
        assert (await emceepee.execute("web", "echo", {"a": 1})).text == '{"a": 1}'
        assert (await emceepee.event("server_health_restored"))["data"] == told
        assert (await emceepee.status("web"))["server"]["status"] == "connected"
        assert (await emceepee.says("cancel_task", task_id=silent_call))["success"]
        await drain(emceepee)
        assert life(emceepee, "web") == [
            "server_health_degraded",
            "server_health_restored",
        ]
