"""One server as it is: what it says, in the words of its client's era, and nothing of ours."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from asgi_client import META, MODERN, Client, Json
from asgi_world import World, listening, open_world
from emceepee_lines import open_pipes
from emceepee_trio.config import parse
from emceepee_trio.front.tasks import EXTENSION
from fake_backends import demo, raw
from memory_peers import scripted
from play import CAPABILITIES, ID, RESULTS, TOKEN, Era, Play
from served import serve

BAD = "/servers/bad/mcp"
SERVERS: Mapping[str, Json] = {"bad": {"command": "bad"}, "other": {"command": "other"}}
ERAS = ["handshake", "modern"]
ENVELOPE = {"resultType", "ttlMs", "cacheScope"}
ASKED: list[tuple[str, Json]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "anything", "arguments": {"a": 1}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "demo://one"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {}}),
]


def line(message: Json) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | message).encode()


def notice(method: str, **params: Any) -> bytes:
    return line({"method": f"notifications/{method}", "params": params})


def result(**result: Any) -> bytes:
    return line({"id": ID.decode().strip('"'), "result": result})


@attrs.define(eq=False)
class Direct:
    """A client that thinks it speaks to the server itself."""

    world: World
    client: Client
    era: str
    play: Play

    async def answer(self, method: str, meta: Json | None = None, /, **params: Any) -> Json:
        if self.era == "modern":
            return await self.client.modern(method, meta=meta, **params).answer()
        more = {"_meta": meta} if meta else {}
        return await self.client.request(method, **params, **more).answer()

    async def ask(self, method: str, meta: Json | None = None, /, **params: Any) -> Json:
        answer = await self.answer(method, meta, **params)
        assert "result" in answer, answer
        said: Json = answer["result"]
        return said

    def count(self, method: str) -> int:
        """How many of these the server got."""
        return sum(message.get("method") == method for message in self.play.heard)

    def heard(self, method: str) -> Json:
        """The params that the server got with the last one of these."""
        params: Json = [m for m in self.play.heard if m.get("method") == method][-1]["params"]
        return params


@asynccontextmanager
async def opened(
    era: str, of: Era = "handshake", servers: Mapping[str, Json] = SERVERS, **settings: Any
) -> AsyncGenerator[Direct]:
    config = parse({"mcpServers": servers, **settings}, folder=Path.cwd(), environ={}).config
    with scripted(Play(era=of)) as play:
        async with open_world(config) as world:
            client = world.client()
            client.path = BAD
            if era == "handshake":
                assert (await client.initialize()).status == 200
            yield Direct(world, client, era, play)


@pytest.mark.parametrize("of", ERAS)
async def test_extensions_go_both_ways(of: Era) -> None:
    config = parse({"mcpServers": SERVERS}, folder=Path.cwd(), environ={}).config
    extensions = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html"]}}
    with scripted(Play(era=of)) as play:
        async with open_world(config) as world:
            client = world.client()
            client.path, client.capabilities = BAD, {"extensions": extensions}
            assert (await client.initialize()).status == 200
            await client.request("tools/list").answer()
    method = {"handshake": "initialize", "modern": "tools/list"}[of]
    (said,) = (message["params"] for message in play.heard if message.get("method") == method)
    if of == "modern":
        said = {"capabilities": said["_meta"][f"{META}clientCapabilities"]}
    assert said["capabilities"]["extensions"] == extensions


@pytest.mark.parametrize("of", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_it_says_what_the_server_says(era: str, of: Era) -> None:
    async with opened(era, of) as direct:
        if era == "modern":
            hello = await direct.ask("server/discover")
            assert hello["supportedVersions"] == [MODERN]
            assert hello["_meta"][f"{META}serverInfo"]["name"] == "scripted"
        else:
            hello = (await (await direct.client.initialize()).answer())["result"]
            assert hello["serverInfo"] == RESULTS["initialize"]["serverInfo"]
        tasks: Json = {"extensions": {EXTENSION: {}}} if era == "modern" else {}
        assert hello["capabilities"] == CAPABILITIES | tasks
        assert hello.get("instructions") == ("none" if of == "handshake" else None)
        for method, params in ASKED:
            meta = {"traceparent": "00-1-2-01", "x": {"y": 1}}
            said = await direct.ask(method, meta, **params)
            if era == "modern":
                assert said.pop("resultType") == "complete"
                for key in ENVELOPE & said.keys() - RESULTS[method].keys():
                    del said[key]
            expected = {**RESULTS[method]}
            if (era, of) == ("handshake", "modern"):
                assert not ENVELOPE & said.keys()
                expected = {key: expected[key] for key in expected.keys() - ENVELOPE}
            elif era == "handshake":
                assert not ENVELOPE & said.keys() - expected.keys()
            theirs = said.pop("_meta", {})
            assert {k: v for k, v in theirs.items() if not k.startswith(META)} == expected.pop(
                "_meta", {}
            )
            assert said == expected, method
            # It gets what the client sent, and what is of the client's connection is not told.
            heard = direct.heard(method)
            kept = {k: v for k, v in heard.pop("_meta").items() if not k.startswith(META)}
            kept.pop("progressToken", None)
            assert (heard, kept) == (params, meta), method


@pytest.mark.parametrize("era", ERAS)
async def test_errors_are_those_of_the_server(era: str) -> None:
    async with opened(era) as direct:
        data = {"uri": "demo://x", "more": [1]}
        error = {"code": -32002, "message": "no such thing", "data": data}
        direct.play.instead["resources/read"] = [line({"id": "@ID@", "error": error})]
        said = await direct.answer("resources/read", uri="demo://x")
        code = -32602 if era == "modern" else -32002
        assert said["error"] == {**error, "code": code}
        odd = {"code": -32099, "message": "odd", "data": None}
        direct.play.instead["tools/call"] = [line({"id": "@ID@", "error": odd})]
        said = await direct.answer("tools/call", name="x", arguments={})
        assert (said["error"]["code"], said["error"]["message"]) == (-32099, "odd")
        unknown = await direct.answer("vendor/method")
        assert unknown["error"]["code"] == -32601


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_long_is_whole(era: str) -> None:
    """Also where previews are asked for: its client has no tool to read the rest."""
    entry = {"command": "bad", "results": {"inline_bytes": 2048}}
    async with opened(era, servers={"bad": entry}) as direct:
        text = "a line\n" * 50_000
        said = {"content": [{"type": "text", "text": text}], "structuredContent": {"said": text}}
        direct.play.instead["tools/call"] = [result(**said)]
        answer = await direct.ask("tools/call", name="x", arguments={})
        assert {key: answer[key] for key in said} == said
        contents = [{"uri": "demo://x", "text": text}]
        direct.play.instead["resources/read"] = [result(contents=contents)]
        assert (await direct.ask("resources/read", uri="demo://x"))["contents"] == contents


async def test_what_a_call_says_comes_before_its_answer_and_in_order() -> None:
    async with opened("handshake") as direct:
        told = {"progressToken": TOKEN.decode().strip('"')}
        direct.play.instead["tools/call"] = [
            notice("message", level="info", logger="l", data={"n": 1}),
            notice("progress", progress=1, total=3, message="one", **told),
            notice("message", level="debug", data="two"),
            notice("progress", progress=0.5, vendor="goes back", **told),
            result(content=[], vendor=1),
        ]
        exchange = direct.client.request(
            "tools/call", name="x", arguments={}, _meta={"progressToken": "mine"}
        )
        *said, answer = (await exchange.complete()).messages
        assert [m["params"] for m in said] == [
            {"level": "info", "logger": "l", "data": {"n": 1}},
            {"progressToken": "mine", "progress": 1, "total": 3, "message": "one"},
            {"level": "debug", "data": "two"},
            {"progressToken": "mine", "progress": 0.5, "vendor": "goes back"},
        ]
        assert answer["result"] == {"content": [], "vendor": 1}


async def test_a_modern_client_hears_of_what_it_asked_for() -> None:
    async with opened("modern") as direct:
        direct.play.instead["tools/call"] = [
            notice("message", level="info", data="quiet"),
            notice("message", level="error", data="loud"),
            result(content=[]),
        ]
        said = direct.client.modern("tools/call", name="x", arguments={})
        assert len((await said.complete()).messages) == 1
        meta = {f"{META}logLevel": "warning"}
        said = direct.client.modern("tools/call", meta=meta, name="x", arguments={})
        loud, _ = (await said.complete()).messages
        assert loud["params"] == {"level": "error", "data": "loud"}


async def test_a_client_of_the_handshake_era_is_told_what_changes() -> None:
    async with opened("handshake") as direct:
        stream = await listening(direct.client)
        direct.play.instead["tools/call"] = [
            notice("tools/list_changed"),
            notice("vendor/news", x=1),
            result(content=[]),
        ]
        await direct.ask("tools/call", name="x", arguments={})
        methods = [(await stream.message(n))["method"] for n in range(2)]
        assert methods == ["notifications/tools/list_changed", "notifications/vendor/news"]
        assert await direct.ask("resources/subscribe", uri="demo://one") == {}
        assert direct.heard("resources/subscribe") == {"uri": "demo://one"}
        assert await direct.ask("resources/unsubscribe", uri="demo://one") == {}
        assert direct.heard("resources/unsubscribe") == {"uri": "demo://one"}


async def test_a_modern_client_is_asked_in_rounds_what_a_server_of_the_other_era_asks() -> None:
    call: Json = {"name": "ask", "arguments": {}}
    answers = {"action": "accept", "content": {"not": "of the form"}}  # it is the server's to judge
    async with opened("modern") as it:
        can: Json = {f"{META}clientCapabilities": {"elicitation": {}}}
        asked = await it.ask("tools/call", can, **call)
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        again = {"inputResponses": {key: answers}, "requestState": asked["requestState"]}
        said = await it.ask("tools/call", can, **call, **again)
        assert said["structuredContent"]["got"]["result"] == answers
        assert it.count("tools/call") == 1
        # Of one that cannot be asked, the server hears so at once.
        said = await it.ask("tools/call", **call)
        assert said["structuredContent"]["got"]["error"]["code"] == -32601


async def test_a_modern_server_is_not_told_that_a_client_can_what_it_is_not_to_be_asked() -> None:
    can: Json = {f"{META}clientCapabilities": {"elicitation": {}, "sampling": {}, "roots": {}}}
    relay = {"views": {"server": {"elicitation": "tools"}}}
    async with opened("modern", "modern", relay=relay) as it:
        await it.ask("tools/call", can, name="anything", arguments={})
        told = it.heard("tools/call")["_meta"][f"{META}clientCapabilities"]
        assert told.keys() == {"sampling", "roots"}


async def test_a_stream_says_what_it_will_deliver_and_delivers_that() -> None:
    async with opened("modern") as direct:
        wanted = {
            "toolsListChanged": True,
            "promptsListChanged": True,  # which the server does not promise
            "resourceSubscriptions": ["demo://one"],
        }
        stream = direct.client.modern("subscriptions/listen", notifications=wanted, id="s")
        acknowledged = await stream.message()
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert acknowledged["params"]["notifications"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["demo://one"],
        }
        direct.play.instead["tools/call"] = [
            notice("prompts/list_changed"),
            notice("resources/updated", uri="demo://two"),
            notice("resources/updated", uri="demo://one"),
            notice("tools/list_changed"),
            result(content=[]),
        ]
        await direct.ask("tools/call", name="x", arguments={})
        updated, changed = await stream.message(1), await stream.message(2)
        assert updated["method"] == "notifications/resources/updated"
        assert updated["params"]["uri"] == "demo://one"
        assert changed["method"] == "notifications/tools/list_changed"
        for each in (acknowledged, updated, changed):
            assert each["params"]["_meta"][f"{META}subscriptionId"] == "s"
        before = direct.count("resources/subscribe")
        # A second one costs the server nothing, and undoes nothing when it goes.
        other = direct.client.modern("subscriptions/listen", notifications=wanted)
        await other.message()
        other.drop()
        stream.drop()
        while not direct.count("resources/unsubscribe"):
            await direct.ask("prompts/list")
        assert direct.count("resources/subscribe") == before
        assert direct.count("resources/unsubscribe") == 1


async def test_what_is_denied_is_neither_listed_nor_called() -> None:
    entry = {"command": "bad", "denied_tools": ["echo", "greet"]}
    async with opened("handshake", servers={"bad": entry}) as direct:
        tools = (await direct.ask("tools/list"))["tools"]
        assert [tool["name"] for tool in tools] == ["ask", "never"]
        assert (await direct.ask("prompts/list"))["prompts"] == []
        for method, name in (("tools/call", "echo"), ("prompts/get", "greet")):
            refused = await direct.answer(method, name=name)
            assert refused["error"]["code"] == -32602
            assert name in refused["error"]["message"]
            assert not [m for m in direct.play.heard if m.get("method") == method]


async def test_a_server_that_there_is_not_is_refused_with_those_there_are() -> None:
    async with opened("handshake") as direct:
        client = direct.world.client()
        client.path = "/servers/bda/mcp"
        status, error = await (await client.initialize()).error()
        assert (status, error["code"]) == (404, -32602)
        assert "bad, other" in error["message"]
        status, error = await client.modern("tools/list").error()
        assert (status, error["code"]) == (400, -32602)
        assert "bad, other" in error["message"]
        # A session is of the URL that it was opened at.
        direct.client.path = "/servers/other/mcp"
        status, error = await direct.client.request("tools/list").error()
        assert status == 404


async def test_no_other_server_is_started() -> None:
    async with opened("handshake") as direct:
        session = direct.client.own.session
        states = {name: backend.state.value for name, backend in session.backends.items()}
        assert states["bad"] == "connected"
        assert states["other"] != "connected"


async def test_the_command_line_shows_one_here_and_on_a_daemon(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"one": demo(), "raw": raw()}}), "utf-8")
    with serve(tmp_path, "--config", str(config)) as daemon:
        here = ("--config", str(config))
        there = ("--connect", daemon.url, "--state-dir", str(tmp_path))
        for name, where in (("here", here), ("there", there)):
            log = tmp_path / f"{name}.log"
            async with open_pipes(log, "stdio", "--server", "one", *where) as lines:
                hello = await lines.initialize()
                assert hello["result"]["serverInfo"]["name"] == "demo"
                arguments = {"name": "echo", "arguments": {"text": "hi"}}
                said = await lines.request(2, "tools/call", arguments)
                assert said["result"]["content"] == [{"type": "text", "text": "hi"}]
        async with open_pipes(tmp_path / "raw.log", "stdio", "--server", "raw", *here) as lines:
            await lines.initialize()
            count = {"name": "log_many", "arguments": {"n": 50}}
            await lines.request(2, "tools/call", count)
            # All of them before the answer, however slow the pipe is.
            assert [m["params"]["data"] for m in lines.other if "params" in m] == [
                {"n": n} for n in range(50)
            ]
