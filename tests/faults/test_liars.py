"""Servers that break the protocol: the call suffers, sometimes its connection, nobody else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from emceepee_client import Emceepee, Json, Open
from fake_backends import HERE, Journal, raw
from http_server import QUIET, HttpServer, Reply, Request, Spoil, open_http_server
from like import Like
from telling import data, drain, kinds, life

pytestmark = QUIET

LATER: dict[str, Any] = {"base_delay_ms": 3_600_000, "max_delay_ms": 3_600_000}


def lying(*flags: Any) -> Json:
    entry = raw(*flags)
    return {**entry, "args": [str(HERE / "lying_server.py"), *entry["args"][1:]], "restart": LATER}


async def echo(emceepee: Emceepee, server: str = "good") -> None:
    assert (await emceepee.execute(server, "echo", {"text": "fine"})).text == "fine"


# -- over stdio ----------------------------------------------------------------------------------


async def test_half_an_answer_is_waited_for_and_can_be_given_up(
    connect: Open, journal: Journal
) -> None:
    async with connect({"bad": lying(*journal.flags), "good": raw()}) as emceepee:
        task = await emceepee.start_task("bad", "half")
        await journal.wait_for_marker("half written")
        await echo(emceepee)
        behind = await emceepee.start_task("bad", "echo")
        assert (await emceepee.says("cancel_task", task_id=task))["success"]
        await journal.wait_for_method("notifications/cancelled")
        await echo(emceepee)
        assert (await emceepee.says("get_task", task_id=behind))["task"]["status"] == "working"
        await emceepee.says("remove_server", name="bad")
        assert (await emceepee.task_over(behind))["status"] == "failed"
        await echo(emceepee)
        await drain(emceepee)
        ended = ["process_stopped", "server_disconnected", "server_removed"]
        assert life(emceepee, "bad") == ended
        assert life(emceepee, "good") == []


async def test_half_an_answer_is_not_waited_for_longer_than_the_server_may_take(
    connect: Open,
) -> None:
    entry = lying() | {"call_timeout_ms": 1000}
    async with connect({"bad": entry, "good": raw()}) as emceepee:
        error = await emceepee.fails("execute_tool", server="bad", tool="half")
        assert error["code"] == "TOOL_ERR_TIMEOUT"
        assert (await emceepee.status("bad"))["calls_in_flight"] == []
        await echo(emceepee)
        # Only who asks for it gets a new one.
        await emceepee.says("reconnect_server", name="bad")
        await echo(emceepee, "bad")


async def test_an_answer_that_is_not_json_fails_its_call_and_is_kept_as_noise(
    connect: Open, journal: Journal
) -> None:
    async with connect({"bad": lying(*journal.flags)}) as emceepee:
        error = await emceepee.fails("execute_tool", server="bad", tool="not_json")
        assert "the server's message is not JSON" in error["message"]
        await echo(emceepee, "bad")
        (line,) = (await emceepee.says("get_logs", server="bad", sources=["stdout"]))["logs"]
        assert line["data"] == Like(r'\{"jsonrpc": "2.0", "id": \d+, "result": .*')
        assert life(emceepee, "bad") == []


ANSWER = '{"jsonrpc": "2.0", "id": ID, "result": {"content": [], "x": MANY}}'
UNFIT = [
    ({"line": ANSWER, "many": '"caf\xe9"'}, "is not UTF-8"),
    ({"line": ANSWER, "many": "9", "times": 5000}, "holds a number of more than 308 digits"),
    ({"line": ANSWER, "many": "9", "times": 400}, "holds a number of more than 308 digits"),
    ({"line": ANSWER.replace("}}", "]}}"), "many": "[", "times": 200}, "is nested deeper"),
    ({"line": ANSWER, "many": "[", "times": 100_000}, "is nested deeper"),
    ({"line": ANSWER, "many": '{"x":', "times": 985}, "is nested deeper"),
    (
        {"line": ANSWER.replace("MANY", "[MANY1]"), "many": "{},", "times": 1_000_000},
        "limits.values",
    ),
]


@pytest.mark.parametrize(("said", "why"), UNFIT)
async def test_an_answer_that_is_not_taken_fails_its_call_and_says_why(
    connect: Open, said: dict[str, Any], why: str
) -> None:
    async with connect({"bad": lying(), "good": raw()}) as emceepee:
        bad = {"server": "bad", "tool": "verbatim", "args": said}
        error = await emceepee.fails("execute_tool", **bad)
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "the server's message " in error["message"]
        assert why in error["message"]
        await echo(emceepee)
        await echo(emceepee, "bad")
        await drain(emceepee)
        assert life(emceepee, "bad") == life(emceepee, "good") == []


@pytest.mark.parametrize("spelled", ["ID.0", '"ID"', "ID"])
async def test_an_answer_may_spell_its_id_in_any_way(connect: Open, spelled: str) -> None:
    async with connect({"bad": lying()}) as emceepee:
        line = ANSWER.replace("ID", spelled).replace("[]", '[{"type": "text", "text": "here"}]')
        said = {"line": line, "many": "1"}
        assert (await emceepee.execute("bad", "verbatim", said)).text == "here"


async def test_answers_to_nobody_answer_nothing(connect: Open, journal: Journal) -> None:
    async with connect({"bad": lying(*journal.flags)}) as emceepee:
        other = await emceepee.start_task("bad", "never")
        await journal.wait_for_marker("never started")
        answer = await emceepee.execute("bad", "wrong_ids")
        assert answer.text == "yours"
        assert (await emceepee.says("get_task", task_id=other))["task"]["status"] == "working"
        await echo(emceepee, "bad")
        assert (await emceepee.says("cancel_task", task_id=other))["success"]
        await drain(emceepee)
        assert life(emceepee, "bad") == []


async def test_of_several_answers_the_first_one_counts(connect: Open) -> None:
    async with connect({"bad": lying()}) as emceepee:
        assert (await emceepee.execute("bad", "twice")).text == "first"
        task = await emceepee.start_task("bad", "twice")
        await emceepee.event("task_completed", taskId=task)
        for _ in range(2):
            assert (await emceepee.call("get_task_result", task_id=task)).text == "first"
        await echo(emceepee, "bad")
        await drain(emceepee)
        assert kinds(emceepee, "bad") == ["task_created", "task_completed"]


@pytest.mark.parametrize(
    ("tool", "args"), [("big", {"size": 50_000_000}), ("endless", {})], ids=["50 MB", "endless"]
)
async def test_a_line_that_is_too_long_ends_the_connection(
    connect: Open, tool: str, args: Json
) -> None:
    async with connect({"bad": lying(), "good": raw()}) as emceepee:
        task = await emceepee.start_task("bad", "never")
        await echo(emceepee)
        error = await emceepee.fails("execute_tool", server="bad", tool=tool, args=args)
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert error["details"] == {"may_have_run": True}
        failed = await emceepee.task_over(task)
        assert failed["status"] == "failed"
        await emceepee.event("restarting", name="bad")
        await drain(emceepee)
        (lost,) = data(emceepee, "bad", "server_disconnected")
        assert lost["reason"] == Like("message too long.*")
        assert not lost["wasIntentional"]
        told = life(emceepee, "bad")
        # It is we who end it, though it may have died of writing to nobody before.
        assert sorted(told[:2]) == ["process_stopped", "server_disconnected"]
        assert told[2:] == ["restarting"]
        await echo(emceepee)
        await echo(emceepee, "bad")  # which starts it again
        assert life(emceepee, "good") == []


async def test_a_flood_of_notifications_is_bounded_and_counted(connect: Open) -> None:
    n = 100_000
    async with connect({"bad": lying(), "good": raw()}) as emceepee:
        await emceepee.connected("bad", "good")
        task = await emceepee.start_task("bad", "notify_many", {"n": n, "k": 0})
        others = 0
        while (await emceepee.says("get_task", task_id=task))["task"]["status"] == "working":
            await echo(emceepee)
            others += 1
        assert others > 1
        assert (await emceepee.call("get_task_result", task_id=task)).text == "notified"
        kept = (await emceepee.says("get_notifications", server="bad"))["notifications"]
        assert [one["params"]["n"] for one in kept] == list(range(n - 100, n))
        await drain(emceepee)
        told = [one["params"]["n"] for one in data(emceepee, "bad", "notification")]
        assert told == sorted(set(told))
        assert told[-1] == n - 1
        # What it was not told it was told of; two are of the task.
        rest = [one for one in emceepee.events if one["type"] != "notification"]
        assert emceepee.lost > 0
        assert len(told) + emceepee.lost + len(rest) == n + 2
        assert life(emceepee, "bad") == []


# -- over HTTP -----------------------------------------------------------------------------------


@asynccontextmanager
async def silent_listener() -> AsyncGenerator[str]:
    """Accepts, and never answers; its URL."""

    async def hold(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, hold, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/mcp"
        nursery.cancel_scope.cancel("test is over")


async def test_a_port_where_nobody_answers(connect: Open) -> None:
    async with silent_listener() as url:
        servers = {
            "bad": {"url": url, "connect_timeout_ms": 500, "reconnect": LATER},
            "good": raw(),
        }
        async with connect(servers) as emceepee:
            error = await emceepee.fails("execute_tool", server="bad", tool="echo")
            assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
            assert "no answer within 500 ms" in error["message"]
            await echo(emceepee)
            await emceepee.event("server_reconnecting", name="bad")
            assert life(emceepee, "bad") == ["server_reconnecting"] * len(
                data(emceepee, "bad", "server_reconnecting")
            )


async def half_a_body(request: Request, reply: Reply) -> None:
    await reply.start(200, "application/json", content_length="1000")
    await reply.data(b'{"jsonrpc": "2.0", "id": ')
    await trio.sleep_forever()


async def half_an_event(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.data(b'event: message\ndata: {"jsonrpc": "2.0", "id": ')
    await trio.sleep_forever()


async def primed(request: Request, reply: Reply) -> None:
    """The start of a stream that one could ask for the rest of."""
    await reply.events()
    await reply.event("", more="id: 1\nretry: 0\n")
    await trio.sleep_forever()


async def silence(request: Request, reply: Reply) -> None:
    await trio.sleep_forever()


def bad_calls(how: Callable[..., Any]) -> Spoil:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "tools/call" and "bad" in request.message["params"]["arguments"]:
            await how(request, reply)
            return True
        return False

    return spoil


@pytest.mark.parametrize("how", [half_a_body, half_an_event, primed, silence])
async def test_what_may_still_be_answered_is_waited_for_and_can_be_given_up(
    connect: Open, how: Callable[..., Any]
) -> None:
    server = HttpServer(spoil=bad_calls(how))
    async with open_http_server(server):
        async with connect({"web": {"url": server.url}}) as emceepee:
            task = await emceepee.start_task("web", "echo", {"bad": True})
            request = await server.wait_for("tools/call")
            assert (await emceepee.execute("web", "echo", {"a": 1})).text == '{"a": 1}'
            assert (await emceepee.says("get_task", task_id=task))["task"]["status"] == "working"
            assert (await emceepee.says("cancel_task", task_id=task))["success"]
            await server.wait_for("notifications/cancelled")
            # Nothing of it stays open.
            await request.aborted.wait()
            assert (await emceepee.execute("web", "echo", {"a": 2})).text == '{"a": 2}'
            assert (await emceepee.status("web"))["calls_in_flight"] == []
            await drain(emceepee)
            assert life(emceepee, "web") == []
        assert not server.sessions
    assert not [r for r in server.requests if "last-event-id" in r.headers]


async def test_one_that_takes_no_notice_of_notices(connect: Open) -> None:
    """What comes after them goes out all the same; it is shown as it is, connected."""

    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method.startswith("notifications/"):
            await trio.sleep_forever()
        return False

    server = HttpServer(spoil=spoil)
    async with open_http_server(server), connect({"web": {"url": server.url}}) as emceepee:
        await server.wait_for("notifications/initialized")
        assert (await emceepee.execute("web", "echo", {"a": 1})).text == '{"a": 1}'
        await emceepee.says("set_roots", roots=[{"uri": "file:///somewhere"}])
        await server.wait_for("notifications/roots/list_changed")
        assert (await emceepee.execute("web", "echo", {"a": 2})).text == '{"a": 2}'
        assert (await emceepee.status("web"))["server"]["status"] == "connected"
        await drain(emceepee)
        assert life(emceepee, "web") == []


async def not_json(request: Request, reply: Reply) -> None:
    await reply.whole(200, b'{"jsonrpc": "2.0", ]', "application/json")


async def not_json_in_an_event(request: Request, reply: Reply) -> None:
    await reply.events()
    await reply.event('{"jsonrpc": "2.0", ]')
    await reply.end()


async def nothing(request: Request, reply: Reply) -> None:
    await reply.whole(200, b"", "application/json")


async def a_page(request: Request, reply: Reply) -> None:
    await reply.whole(200, b"<html>Welcome", "text/html")


async def somebody_elses(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "id": "nobody", "result": {"content": []}})


async def nobodys(request: Request, reply: Reply) -> None:
    error = {"code": -32000, "message": "too busy"}
    await reply.json({"jsonrpc": "2.0", "id": None, "error": error})


async def too_busy(request: Request, reply: Reply) -> None:
    await reply.json({"detail": "come back later"}, 429)


async def a_notice(request: Request, reply: Reply) -> None:
    await reply.json({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (not_json, "the server's message is not JSON"),
        (not_json_in_an_event, "the server's message is not JSON"),
        (nothing, "no answer to this request"),
        (a_page, "Unexpected content type"),
        (somebody_elses, "no answer to this request"),
        (nobodys, "too busy"),
        (a_notice, "no answer to this request"),
        (too_busy, "error response"),
    ],
)
async def test_what_is_no_answer_over_http_fails_its_call(
    connect: Open, how: Callable[..., Any], said: str
) -> None:
    """At once; the server and its other calls go on."""

    server = HttpServer(spoil=bad_calls(how))
    async with open_http_server(server), connect({"web": {"url": server.url}}) as emceepee:
        other = await emceepee.start_task("web", "slow")
        bad = {"server": "web", "tool": "echo", "args": {"bad": True}}
        error = await emceepee.fails("execute_tool", **bad)
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert said in error["message"]
        server.release.set()
        assert (await emceepee.task_over(other))["status"] == "completed"
        assert (await emceepee.status("web"))["calls_in_flight"] == []
        await drain(emceepee)
        assert life(emceepee, "web") == []
