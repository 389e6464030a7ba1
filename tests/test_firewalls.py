"""An exception that nobody expects, planted in each kind of child that a session has.

One thing fails, with the id that the log has; a call to another server and the next one to the same
go on, nothing stays open, and every task that the session had is there again. The next kind of
child is one row of :data:`PLANTS`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from asgi_client import HELLO, LATEST, Client, Json, request
from asgi_world import World, open_world
from emceepee_trio.backend import link, preferences, reconciliation, supervisor
from emceepee_trio.backend.catalogue import catalog
from emceepee_trio.backend.children import start
from emceepee_trio.backend.connections import callbacks, client, connect, health
from emceepee_trio.config import Config, Limits, Server
from emceepee_trio.front import lists, log_messages, progress
from emceepee_trio.front.faces import ours
from emceepee_trio.front.handshake import connection, streams
from emceepee_trio.session import buffers, events, session, timers
from emceepee_trio.session.calls import calls
from emceepee_trio.session.questions import questions
from emceepee_trio.session.servers import backends
from emceepee_trio.session.session import Session
from emceepee_trio.tools import execution
from emceepee_trio.tools.common import asking, response
from emceepee_trio.tools.news import activity
from memory_peers import Peer, Peers

ONE, OTHER = "one", "other"
FORM = {"mode": "form", "message": "name?", "requestedSchema": {"type": "object"}}


class Planted(RuntimeError):
    """Nobody expects it."""


@contextmanager
def planted(owner: Any, name: str, times: int = 1) -> Generator[Callable[[], None]]:
    """Once armed, the next *times* that this function is called, it raises; a property, too."""
    original = owner.__dict__[name]
    function: Any = original.fget if isinstance(original, property) else original
    left = 0

    def arm() -> None:
        nonlocal left
        left = times

    def instead(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise Planted(name)
        return function(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, property(instead) if isinstance(original, property) else instead)
        yield arm


@attrs.define(eq=False)
class Scene:
    """A session with two servers, and its client."""

    world: World
    peers: Peers
    client: Client
    session: Session
    arm: Callable[[], None]
    caplog: pytest.LogCaptureFixture

    def peer(self, server: str) -> Peer:
        """The other end of the connection that there is."""
        return self.peers.open(lambda peer: peer.server.name == server)[-1]

    async def execute(self, tool: str, server: str = ONE, **options: Any) -> Json:
        return await self.client.call("execute_tool", server=server, tool=tool, **options)

    async def says(self, tool: str, /, **arguments: Any) -> Any:
        """The JSON that a tool of ours answers."""
        return said(await self.client.call(tool, **arguments))

    async def settle(self) -> None:
        """Whatever has to begin again has begun: the longest pause is a minute."""
        await trio.sleep(100)

    def crashes(self) -> list[tuple[str, str]]:
        """What has crashed, and the ids under which the log tells it."""
        found = [r for r in self.caplog.records if r.exc_info and r.name == "emceepee_trio"]
        assert all(_is_planted(record.exc_info[1]) for record in found)  # type: ignore[index]
        return [(r.message, r.fields["log_id"]) for r in found]  # type: ignore[attr-defined]


def _is_planted(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_planted, error.exceptions))
    return isinstance(error, Planted)


def said(result: Json) -> Any:
    return json.loads(result["content"][0]["text"])


def on_call(peer: Peer, request_id: int) -> None:
    match peer.requests[request_id]["params"]["name"]:
        case "echo":
            peer.answer(request_id, {"content": [{"type": "text", "text": "echo"}]})
        case "wrong":
            peer.answer(request_id, {"content": [], "isError": True})
        case "ask":
            asked = {"method": "elicitation/create", "params": FORM}
            peer.say({"jsonrpc": "2.0", "id": 1, **asked})


def server(name: str) -> Server:
    return Server(name, command="program", era="handshake")


@asynccontextmanager
async def open_scene(plant: Plant, caplog: pytest.LogCaptureFixture) -> AsyncGenerator[Scene]:
    peers = Peers(on_call=on_call)
    limits = Limits(events_ms=600_000, session_idle_ms=1_800_000)
    config = Config(servers=(server(ONE), server(OTHER)), limits=limits)
    with peers.in_place(), planted(plant.owner, plant.name, plant.times) as arm:
        async with open_world(config) as world:
            joined = await world.joined()
            assert joined.session is not None
            living = world.manager.get(joined.session)
            assert living is not None
            for each in living.backends.values():
                await each.connection()
            await joined.request("logging/setLevel", level="debug").answer()
            await joined.call("list_servers")
            await trio.sleep(1)
            yield Scene(world, peers, joined, living, arm, caplog)


# -- how it fails, of each kind -------------------------------------------------------------------

Fails = Callable[[Scene], Awaitable[str | None]]
"""Does what fails and checks how; the log id that somebody was told, if anybody is told one."""


def log_id(text: str) -> str:
    """In what somebody is told."""
    assert text.startswith("internal error (log id "), text
    return text.removeprefix("internal error (log id ")[:8]


async def a_call(scene: Scene) -> str:
    scene.arm()
    result = await scene.execute("echo")
    assert result["isError"] is True
    error = said(result)["error"]
    assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
    assert error["details"] == {"code": -32603, "log_id": log_id(error["message"])}
    return log_id(error["message"])


async def a_task(scene: Scene) -> str:
    task = json.loads((await scene.execute("wait", timeout_ms=0))["content"][1]["text"])
    task_id = task["proxy_task"]["task_id"]
    scene.arm()
    peer = scene.peer(ONE)
    (request,) = peer.calls
    peer.answer(request, {"content": []})
    error = said(await scene.client.call("get_task_result", task_id=task_id))["error"]
    shown = (await scene.says("get_task", task_id=task_id))["task"]
    assert (shown["status"], shown["error"]) == ("failed", error["message"])
    return log_id(error["message"])


async def a_request(scene: Scene, method: str = "tools/call", **params: Any) -> str:
    scene.arm()
    params = params or {"name": "list_servers", "arguments": {}}
    answer = await scene.client.request(method, **params).answer()
    assert answer["error"]["code"] == -32603
    return log_id(answer["error"]["message"])


async def a_request_for_a_call(scene: Scene) -> str:
    call = {"server": ONE, "tool": "echo"}
    return await a_request(scene, "tools/call", name="execute_tool", arguments=call)


async def another_request(scene: Scene) -> str:
    return await a_request(scene, "resources/list")


async def a_wait(scene: Scene) -> str:
    return await a_request(scene, "tools/call", name="await_activity", arguments={"timeout_ms": 0})


async def with_progress(scene: Scene) -> None:
    await scene.says("await_activity", timeout_ms=0)
    scene.arm()
    asked = {"name": "await_activity", "arguments": {"timeout_ms": 60_000}}
    exchange = scene.client.request("tools/call", **asked, _meta={"progressToken": 1})
    await trio.sleep(30)
    # What it waits for comes nevertheless.
    await scene.says("set_timer", duration_ms=100, message="m")
    assert "result" in await exchange.answer()


async def the_context(scene: Scene) -> None:
    """Events that cannot be written are counted as lost, and not tried again."""
    await scene.says("await_activity", timeout_ms=0)
    await scene.says("set_timer", duration_ms=100, message="m")
    await trio.sleep(1)
    scene.arm()
    result = await scene.client.call("list_servers")
    assert len(result["content"]) == 1
    after = await scene.client.call("list_servers")
    assert json.loads(after["content"][1]["text"]) == {
        "events_since_last_response": [],
        "events_lost": 1,
    }


async def an_event(scene: Scene) -> None:
    await scene.says("await_activity", timeout_ms=0)
    scene.arm()
    await scene.says("set_timer", duration_ms=100, message="m")
    await trio.sleep(1)
    assert (await scene.says("await_activity", timeout_ms=0))["events_lost"] == 1


async def a_list(scene: Scene) -> str:
    scene.arm()
    found = await scene.says("list_tools")
    (error,) = found["errors"]
    return log_id(error["error"])


async def a_look_beside_a_call(scene: Scene) -> None:
    """What the server has answered counts, although we cannot see whether it has such a tool."""
    scene.arm()
    assert (await scene.execute("wrong"))["isError"] is True


async def a_question(scene: Scene) -> str:
    """The server is told, and may go on without."""
    return log_id(await _asked(scene))


async def a_question_that_cannot_be_told(scene: Scene) -> None:
    assert "could not be told to the client" in await _asked(scene)


async def _asked(scene: Scene) -> str:
    scene.arm()
    exchange = scene.client.tool("execute_tool", server=ONE, tool="ask")
    await trio.sleep(1)
    peer = scene.peer(ONE)
    (answer,) = peer.answers
    assert answer["error"]["code"] == -32603
    assert (await scene.says("get_elicitations"))["elicitations"] == []
    (call,) = peer.calls
    peer.answer(call, {"content": []})
    assert (await exchange.answer())["result"].get("isError") is not True
    return str(answer["error"]["message"])


async def a_timer(scene: Scene) -> None:
    scene.arm()
    timer = (await scene.says("set_timer", duration_ms=1000, message="m", interval=True))["timer"]
    await trio.sleep(2)
    shown = await scene.says("get_timer", timer_id=timer["timer_id"])
    assert shown["timer"]["status"] == "failed"
    other = (await scene.says("set_timer", duration_ms=1000, message="m"))["timer"]
    await trio.sleep(2)
    shown = await scene.says("get_timer", timer_id=other["timer_id"])
    assert shown["timer"]["status"] == "fired"


async def the_sweeper(scene: Scene) -> None:
    scene.session.notified(ONE, "notifications/vendor", None)
    scene.arm()
    await trio.sleep(scene.session.config.limits.events_ms / 1000 + 10)
    assert scene.session.events.next_due() is None


async def the_idle_watch(scene: Scene) -> None:
    """Whoever has a new session does not keep it for ever because of that."""
    scene.arm()
    other = await scene.world.joined()
    assert other.session is not None
    await trio.sleep(scene.session.config.limits.session_idle_ms / 1000 - 100)
    scene.session.presence.touch()
    await trio.sleep(200)
    assert scene.world.manager.get(other.session) is None


async def a_connection(scene: Scene) -> None:
    """It is lost, told, and made again as any other."""
    await scene.says("await_activity", timeout_ms=0)
    scene.arm()
    await scene.client.call("reconnect_server", name=ONE)
    await scene.settle()
    assert scene.session.backend(ONE).state.value == "connected"


async def a_first_connection(scene: Scene) -> str:
    scene.arm()
    result = await scene.client.call("add_server", name="third", command="program")
    error = said(result)["error"]
    assert error["code"] == "TOOL_ERR_CONNECT_FAILED"
    _, _, message = error["message"].partition("server 'third': ")
    assert list(scene.session.backends) == [ONE, OTHER]
    return log_id(message)


async def a_lost_connection(scene: Scene) -> None:
    scene.arm()
    exchange = scene.client.tool("execute_tool", server=ONE, tool="wait")
    await trio.sleep(1)
    scene.peer(ONE).end()
    error = said((await exchange.answer())["result"])["error"]
    assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
    await scene.settle()
    assert scene.session.backend(ONE).state.value == "connected"


async def a_notification(scene: Scene) -> None:
    scene.arm()
    for n in range(2):
        params = {"n": n}
        scene.peer(ONE).say({"jsonrpc": "2.0", "method": "notifications/x", "params": params})
    await trio.sleep(1)
    found = await scene.says("get_notifications", server=ONE)
    assert [each["params"] for each in found["notifications"]] == [{"n": 1}]


async def a_log_line(scene: Scene) -> None:
    scene.arm()
    params = {"level": "info", "data": "x"}
    for _ in range(2):
        message = {"method": "notifications/message", "params": params}
        scene.peer(ONE).say({"jsonrpc": "2.0", **message})
    await trio.sleep(1)
    assert len((await scene.says("get_logs", server=ONE))["logs"]) == 1


async def its_health(scene: Scene) -> None:
    scene.arm()
    await trio.sleep(3 * scene.session.config.health.interval_ms / 1000)
    checked = len([p for p in scene.peers.all if p.server.name == ONE])
    assert checked == 1


async def an_addition(scene: Scene) -> None:
    scene.arm()
    await scene.says("add_server", name="third", command="program")
    assert await scene.execute("echo", "third")
    await scene.says("remove_server", name="third")


async def a_removal(scene: Scene) -> None:
    await scene.says("add_server", name="third", command="program")
    scene.arm()
    await scene.says("remove_server", name="third")
    assert list(scene.session.backends) == [ONE, OTHER]


async def the_client_s_connection(scene: Scene) -> None:
    """What it has under way goes on as tasks; it initializes again, and finds its session."""
    exchange = scene.client.tool("execute_tool", server=OTHER, tool="wait")
    await trio.sleep(1)
    await exchange.begun()
    scene.arm()
    hello = request(99, "initialize", protocolVersion=LATEST, **HELLO)
    answer = await scene.client.post(hello, mcp_session_id=scene.client.session).answer()
    assert answer["error"]["code"] == -32603
    assert (await scene.client.rejoin()).status == 200
    await scene.client.request("logging/setLevel", level="debug").answer()
    (task,) = (await scene.says("list_tasks"))["tasks"]
    await scene.says("cancel_task", task_id=task["task_id"])


async def log_messages_to_the_client(scene: Scene) -> None:
    stream = scene.client.get()
    scene.arm()
    for n in range(2):
        params = {"level": "info", "data": n}
        message = {"method": "notifications/message", "params": params}
        scene.peer(ONE).say({"jsonrpc": "2.0", **message})
        await scene.settle()
    assert (await stream.message())["params"]["data"] == 1


@attrs.frozen
class Plant:
    """What crashes: a function of that owner; how that looks; and what is logged."""

    owner: Any
    name: str
    fails: Fails
    event: str
    times: int = 1

    def __str__(self) -> str:
        return f"{self.fails.__name__}-{self.name}"


PLANTS = [
    Plant(execution._Sending, "send", a_call, "call_crashed"),
    Plant(client.Client, "_envelope", a_call, "call_crashed"),
    Plant(calls, "weigh", a_task, "call_crashed"),
    Plant(calls.Calls, "begin", a_request_for_a_call, "tool_crashed"),
    Plant(ours, "finish", a_request, "request_crashed"),
    Plant(ours, "run_tool", a_request, "request_crashed"),
    Plant(lists, "enveloped", another_request, "request_crashed"),
    Plant(connection, "answer", another_request, "client_connection_crashed"),
    Plant(activity, "_report", a_wait, "request_crashed"),
    Plant(progress.Progress, "_send", with_progress, "progress_crashed"),
    Plant(response, "event_texts", the_context, "context_crashed"),
    Plant(response, "pending", the_context, "context_crashed"),
    Plant(events.Events, "publish", an_event, "event_crashed"),
    Plant(events, "new_event", an_event, "event_crashed"),
    Plant(catalog.Catalog, "_fetch", a_list, "list_crashed"),
    Plant(asking, "entries_of", a_list, "list_crashed"),
    Plant(catalog.Catalog, "_fetch", a_look_beside_a_call, "list_crashed"),
    Plant(questions.Questions, "ask", a_question, "question_crashed"),
    Plant(session, "heard", a_question, "question_crashed"),
    Plant(callbacks.Callbacks, "_answer", a_question, "question_crashed"),
    Plant(events.Events, "publish", a_question_that_cannot_be_told, "event_crashed"),
    Plant(timers.Timers, "_fire", a_timer, "timer_crashed"),
    Plant(events.Events, "sweep", the_sweeper, "sweep_crashed"),
    Plant(streams.Streams, "next_due", the_sweeper, "sweeper_crashed"),
    Plant(session.Session, "has_work", the_idle_watch, "sweep_crashed"),
    Plant(connect, "_negotiate", a_first_connection, "server_connection_crashed"),
    Plant(supervisor.Supervisor, "connected", a_first_connection, "server_connection_crashed"),
    Plant(link.Link, "_opened", a_first_connection, "server_connection_crashed"),
    Plant(connect, "_initialize", a_connection, "server_connection_crashed"),
    Plant(supervisor.Supervisor, "connected", a_connection, "server_connection_crashed"),
    Plant(client.Client, "deliver_outbox", a_connection, "server_connection_crashed"),
    Plant(link.Link, "_end_of_child", a_connection, "server_connection_crashed"),
    Plant(supervisor.Supervisor, "_tell_plan", a_lost_connection, "backend_crashed"),
    Plant(supervisor, "Link", a_lost_connection, "backend_crashed"),
    Plant(reconciliation.Reconciliation, "_find_out", a_lost_connection, "comeback_crashed"),
    Plant(preferences.Preferences, "repeat", an_addition, "wishes_crashed"),
    Plant(start.Start, "watch", an_addition, "start_crashed"),
    Plant(health.HealthCheck, "_next_pause", a_lost_connection, "health_crashed"),
    Plant(client.Client, "check", its_health, "health_crashed"),
    Plant(callbacks.Callbacks, "_heard", a_notification, "notification_crashed"),
    Plant(buffers.Buffers, "hear", a_notification, "notification_crashed"),
    Plant(buffers.Buffers, "log", a_log_line, "log_crashed"),
    Plant(backends.Backends, "_say_gone", a_removal, "removal_crashed"),
    Plant(connection, "by_the_sdk", the_client_s_connection, "client_connection_crashed"),
    Plant(log_messages, "named", log_messages_to_the_client, "log_messages_crashed"),
]


def tasks(scene: Scene) -> list[str]:
    nurseries = (scene.session.inner, scene.session.outer)
    return sorted(task.name for nursery in nurseries for task in nursery.child_tasks)


@pytest.mark.parametrize("plant", PLANTS, ids=str)
async def test_one_thing_fails_and_all_else_goes_on(
    plant: Plant, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_scene(plant, caplog) as scene:
        before = tasks(scene)
        told = await plant.fails(scene)
        crashes = scene.crashes()
        assert {event for event, _ in crashes} == {plant.event}
        assert len(crashes) == plant.times
        if told is not None:
            assert told in {log_id for _, log_id in crashes}
        await scene.settle()
        # The same session, all of it, and nothing more of it.
        assert scene.world.manager.get(scene.session.id) is scene.session
        assert tasks(scene) == before
        for name in (OTHER, ONE):
            assert (await scene.execute("echo", name))["content"][0]["text"] == "echo"
            assert scene.session.backend(name).state.value == "connected"
        assert not scene.session.calls.has_unsettled
        assert not scene.session.questions.open("elicitation")
        assert not scene.session.timers.list(include_inactive=False)
        assert scene.session.presence.waiters == 0
        assert (await scene.says("await_activity", timeout_ms=0))["pending_server"] == []
        assert len(scene.crashes()) == plant.times
