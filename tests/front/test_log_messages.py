"""What servers log, told to a client as it comes, once it has asked for it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_client import META, MODERN, Client, Exchange, Json
from asgi_world import World, open_world
from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.config import Config, Server
from emceepee_trio.front.log_messages import BACKLOG, LogMessages
from emceepee_trio.session.buffers import Buffers, LogEntry
from emceepee_trio.session.session import Session
from fake_backends import raw


def the_session(world: World) -> Session:
    (session,) = world.manager.sessions()
    return session


async def set_level(client: Client, level: str) -> None:
    assert (await client.request("logging/setLevel", level=level).answer())["result"] == {}


def logged(stream: Exchange) -> list[Any]:
    assert all(said["method"] == "notifications/message" for said in stream.messages)
    return [said["params"] for said in stream.messages]


async def test_nothing_is_sent_unasked_and_then_what_is_bad_enough() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            session, stream = the_session(world), client.get()
            session.logged(LogLine("files", "protocol", "emergency", "before"))
            await set_level(client, "warning")
            session.logged(LogLine("files", "protocol", "notice", "not bad enough"))
            session.logged(LogLine("files", "protocol", "warning", "first"))
            session.logged(LogLine("files", "protocol", "alert", {"deep": [None]}, "disk"))
            await stream.message(1)
            await set_level(client, "debug")
            session.logged(LogLine("files", "protocol", "debug", "second level"))
            await stream.message(2)
            assert logged(stream) == [
                {"level": "warning", "logger": "files", "data": "first"},
                {"level": "alert", "logger": "files/disk", "data": {"deep": [None]}},
                {"level": "debug", "logger": "files", "data": "second level"},
            ]


LEVEL = {f"{META}logLevel": "warning"}


@pytest.mark.parametrize("its_era", ["handshake", "modern"])
@pytest.mark.parametrize("name", ["execute_tool", "raw__log_many"])
async def test_a_request_of_the_modern_era_hears_what_is_logged_for_it(
    its_era: str, name: str
) -> None:
    flags = ("--discover", "modern") if its_era == "modern" else ()
    server = Server(name="raw", **raw(*flags))
    with trio.fail_after(60):
        async with open_world(Config(servers=(server,))) as world:
            client = world.client()
            query = "view=native" if "__" in name else ""

            async def heard(level: str, meta: Json) -> list[Json]:
                args: Json = {"level": level, "n": 2}
                if name == "execute_tool":
                    args = {"server": "raw", "tool": "log_many", "args": args}
                params: Json = {"name": name, "arguments": args}
                call = client.modern("tools/call", query, meta=meta, **params)
                return (await call.complete()).messages[:-1]

            said = [each["params"] for each in await heard("error", LEVEL)]
            assert said == [
                {"level": "error", "logger": "raw/raw", "data": {"n": n}} for n in (0, 1)
            ]
            assert await heard("info", LEVEL) == []
            assert await heard("error", {}) == []


async def test_output_of_processes_is_not_a_log_message_and_an_unknown_level_is_info() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            session, stream = the_session(world), client.get()
            await set_level(client, "info")
            session.logged(LogLine("files", "stderr", "info", "a line"))
            session.logged(LogLine("files", "stdout", "info", "a line"))
            session.logged(LogLine("files", "protocol", "fatal", None))
            await stream.message()
            assert logged(stream) == [{"level": "info", "logger": "files", "data": None}]


async def test_what_was_sent_can_still_be_got() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            session, stream = the_session(world), client.get()
            await set_level(client, "info")
            session.logged(LogLine("files", "protocol", "info", "here"))
            await stream.message()
            assert '"data":"here"' in (await client.call("get_logs"))["content"][0]["text"]


async def test_a_client_that_joins_again_has_to_ask_again_and_is_told_once() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            session = the_session(world)
            await set_level(client, "info")
            session.logged(LogLine("files", "protocol", "info", "unread"))
            await wait_all_tasks_blocked()
            await client.rejoin()
            await wait_all_tasks_blocked()
            session.logged(LogLine("files", "protocol", "info", "unasked"))
            await set_level(client, "info")
            session.logged(LogLine("files", "protocol", "info", "asked"))
            stream = client.get()
            await stream.message(1)
            await wait_all_tasks_blocked()
            assert [said["data"] for said in logged(stream)] == ["unread", "asked"]
            assert len(session.buffers.listeners) == 1


async def test_a_level_that_does_not_exist_and_a_modern_client_are_refused() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            client = await world.joined()
            refused = (await client.request("logging/setLevel", level="loud").answer())["error"]
            assert refused["code"] == -32602
            modern = world.client().modern("logging/setLevel", level="info")
            status, error = await modern.error()
            assert (status, error["code"]) == (404, -32601)


async def test_logging_is_offered_to_the_era_that_has_it() -> None:
    with trio.fail_after(60):
        async with open_world() as world:
            hello = await world.client().initialize()
            offered = (await hello.answer())["result"]["capabilities"]
            assert offered["logging"] == {}
            found = (await world.client().modern("server/discover").answer())["result"]
            assert "logging" not in found["capabilities"]
            assert found["supportedVersions"] == [MODERN]


async def test_a_slow_client_gets_the_newest() -> None:
    with trio.fail_after(60):
        buffers = Buffers(notifications=1, logs=1, log_bytes=100)
        messages, over, may_go_on = LogMessages(buffers), trio.Event(), trio.Event()
        sent: list[Any] = []

        async def notify(method: str, params: Any) -> None:
            sent.append(params["data"])
            await may_go_on.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(messages.run, notify, over)
            await wait_all_tasks_blocked()
            for n in range(BACKLOG + 10):
                buffers.log(LogEntry("files", "protocol", "info", None, n, "now"))
                await wait_all_tasks_blocked()
            may_go_on.set()
            await wait_all_tasks_blocked()
            over.set()
        assert sent == [0, *range(10, BACKLOG + 10)]
        assert not buffers.listeners
