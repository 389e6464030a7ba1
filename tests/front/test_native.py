"""The view of servers' own tools, prompts and resources, as clients of either era see it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app_server import HTML, TOOLS, UI, VIEW
from emceepee_lines import open_pipes
from emceepee_trio.tools import BESIDE
from fake_backends import app, raw
from native_client import VIEW_OF_APPS, Era, natively

OURS = [tool.name for tool in BESIDE.tools]


@pytest.fixture(params=["handshake", "modern"])
def era(request: pytest.FixtureRequest) -> Era:
    found: Era = request.param
    return found


async def test_tools_are_listed_as_their_servers_list_them(era: Era) -> None:
    servers = {"raw": raw("--tools", 5), "apps": app(), "off": {**app(), "disabled": True}}
    async with natively(era, servers) as native:
        capabilities = native.hello["capabilities"]
        assert capabilities["tools"] == capabilities["prompts"] == {"listChanged": True}
        assert capabilities["resources"] == {"subscribe": True, "listChanged": True}
        assert capabilities["completions"] == {}
        assert capabilities["extensions"].pop(UI) == {"x": 1}
        assert "list_tools" in native.hello["instructions"]
        tools = await native.tools()
        names = list(tools)
        assert names[-len(OURS) :] == OURS
        theirs = names[: -len(OURS)]
        assert sorted(theirs, key=lambda name: name.startswith("apps__")) == theirs
        assert names[0] == "raw__echo"
        assert tools["raw__echo"]["x-vendor"] == {"cost": 1}
        assert tools["raw__echo"]["_meta"] == {"vendor/tool": "echo"}
        shown = {"ui": {"resourceUri": VIEW_OF_APPS, "visibility": ["model", "app"]}}
        chart = {**TOOLS[0], "name": "apps__chart"}
        assert tools["apps__chart"] == {**chart, "_meta": {**shown, "ui/resourceUri": VIEW_OF_APPS}}
        # For those who show nothing to people, what is only for that would be noise.
        assert "apps__refresh" not in tools


async def test_what_only_apps_call_is_listed_to_who_has_apps(era: Era) -> None:
    extensions = {UI: {"mimeTypes": [HTML]}}
    async with natively(era, {"apps": app()}, extensions) as native:
        tools = await native.tools()
        assert tools["apps__refresh"]["_meta"]["ui"]["visibility"] == ["app"]
        called = json.loads((await native.call("apps__refresh", a=1))["content"][0]["text"])
        assert called == {"called": "refresh", "arguments": {"a": 1}}
        heard = json.loads((await native.call("apps__hello"))["content"][0]["text"])
        assert heard["capabilities"]["extensions"] == extensions


async def test_a_call_is_one_of_execute_tool(era: Era) -> None:
    async with natively(era, {"apps": app(), "raw": raw()}) as native:
        said = await native.call("apps__chart")
        link, embedded = said["content"]
        assert link["uri"] == "apps+file:///chart.csv"
        assert embedded["resource"]["uri"] == VIEW_OF_APPS
        assert said["structuredContent"] == {"n": 1, "uri": VIEW}
        assert said["_meta"]["ui"]["resourceUri"] == VIEW_OF_APPS
        (strange,) = (name for name in await native.tools() if "draw_again" in name)
        assert strange.startswith("apps__draw_again_please_")
        assert '"draw again.please"' in (await native.call(strange))["content"][0]["text"]
        # Also in what execute_tool brings, whose links are read natively.
        said = await native.call("execute_tool", server="apps", tool="chart")
        assert said["content"][0]["uri"] == "apps+file:///chart.csv"
        failed = await native.call("apps__fail")
        assert failed["isError"] is True
        assert "no such luck" in failed["content"][0]["text"]
        missing = await native.fails("tools/call", name="apps_chart", arguments={})
        assert missing["code"] == -32602
        assert "apps__chart" in missing["message"]
        waits = await native.call("raw__never_there")
        assert "has no tool 'never_there'" in waits["content"][0]["text"]


async def test_a_long_result_is_kept_and_its_link_is_read(era: Era) -> None:
    async with natively(era, {"raw": raw()}) as native:
        text = "a line\n" * 5000
        shown, link = (await native.call("raw__echo", text=text))["content"][:2]
        preview = json.loads(shown["text"])
        assert preview["lines"] == 5000
        # Whoever is on another machine has no use for the name of a file.
        assert "file" not in preview
        (whole,) = (await native.ask("resources/read", uri=link["uri"]))["contents"]
        assert (whole["text"], whole["uri"]) == (text, link["uri"])
        part = await native.call("read_result", id=preview["result"], lines=[5000, 5000])
        assert part["content"][0]["text"] == "a line\n"


async def test_a_long_result_is_shown_whole_where_that_is_said() -> None:
    text, rows = "a line\n" * 10_000, [{"id": n, "name": "x" * 40} for n in range(6000)]
    async with natively("modern", {"raw": raw()}, results={"inline_bytes": 0}) as native:
        assert (await native.call("raw__echo", text=text))["content"][0]["text"] == text
        said = await native.call("raw__structured", value={"rows": rows})
        assert said["structuredContent"] == {"rows": rows}


async def test_a_slow_call_becomes_a_task(era: Era, tmp_path: Path) -> None:
    limits = {"execute_timeout_ms": 50}
    async with natively(era, {"raw": raw()}, limits=limits) as native:
        await native.tools()
        file = tmp_path / "go"
        said, shown, *_ = (await native.call("raw__slow", file=str(file)))["content"]
        assert "Promoted to task" in said["text"]
        task = json.loads(shown["text"])["proxy_task"]["task_id"]
        file.touch()
        done = await native.call("get_task_result", task_id=task, timeout_ms=60_000)
        assert "the file is there" in done["content"][0]["text"]


async def test_a_question_that_no_client_can_take_is_answered_by_tool(era: Era) -> None:
    async with natively(era, {"raw": raw()}) as native:
        said, shown, *_ = (await native.call("raw__string_id_question"))["content"]
        assert "answer with respond_to_elicitation" in said["text"]
        found = re.search(r"server raw asks \((\w+)\)", said["text"])
        assert found
        given = {"request_id": found[1], "action": "accept"}
        await native.call("respond_to_elicitation", **given, content={"name": "Ada"})
        task = json.loads(shown["text"])["proxy_task"]["task_id"]
        done = await native.call("get_task_result", task_id=task, timeout_ms=60_000)
        assert "Ada" in done["content"][0]["text"]


async def test_allowed_tools_hold(era: Era) -> None:
    async with natively(era, {"apps": {**app(), "allowed_tools": ["chart", "h*"]}}) as native:
        tools = await native.tools()
        assert [name for name in tools if "__" in name] == ["apps__chart", "apps__hello"]
        refused = await native.call("apps__fail")
        assert "has no tool 'fail'" in refused["content"][0]["text"]


async def test_resources_and_templates(era: Era) -> None:
    async with natively(era, {"apps": app(), "raw": raw()}) as native:
        listed = (await native.ask("resources/list"))["resources"]
        uris = [each["uri"] for each in listed]
        assert uris[:3] == [VIEW_OF_APPS, "apps+file:///chart.csv", "raw+raw://text"]
        assert listed[0]["_meta"] == {"ui": {"prefersBorder": True}}
        templates = (await native.ask("resources/templates/list"))["resourceTemplates"]
        assert templates[0] == {"uriTemplate": "apps+file:///{name}.csv", "name": "csv"}
        assert templates[1]["uriTemplate"] == "raw+raw://item/{id}"
        read = (await native.ask("resources/read", uri=VIEW_OF_APPS))["contents"]
        assert read[0]["uri"] == VIEW_OF_APPS
        assert read[0]["_meta"]["ui/resourceUri"] == VIEW_OF_APPS
        filled = await native.ask("resources/read", uri="apps+file:///a.csv")
        assert filled["contents"][0]["uri"] == "apps+file:///a.csv"
        assert (await native.ask("resources/read", uri="emceepee://diagrams"))["contents"]
        for uri in ("apps+file:///none", "none+file:///x", "file:///chart.csv", "ui://none/x"):
            error = await native.fails("resources/read", uri=uri)
            assert error["code"] == (-32602 if era == "modern" else -32002)
            assert error["data"]["uri"] == uri
        error = await native.fails("resources/read", uri="apps+file:///none")
        assert (error["message"], error["data"]) == (
            "resource not found",
            {"uri": "apps+file:///none"},
        )


async def test_prompts_and_completion(era: Era) -> None:
    async with natively(era, {"apps": app(), "raw": raw()}) as native:
        prompts = (await native.ask("prompts/list"))["prompts"]
        assert [each["name"] for each in prompts] == ["apps__explain", "raw__plain", "raw__greet"]
        got = await native.ask("prompts/get", name="apps__explain", arguments={"what": "x"})
        assert got["description"] == '{"what": "x"}'
        link, embedded = (each["content"] for each in got["messages"])
        assert link["uri"] == "apps+file:///chart.csv"
        assert embedded["resource"]["uri"] == VIEW_OF_APPS
        argument = {"name": "what", "value": "x"}
        for ref, theirs in (
            ({"type": "ref/prompt", "name": "apps__explain"}, "explain"),
            ({"type": "ref/resource", "uri": "apps+file:///{name}.csv"}, "file:///{name}.csv"),
        ):
            found = await native.ask("completion/complete", ref=ref, argument=argument)
            said = json.loads(found["completion"]["values"][0])
            assert said == {**ref, "name" if "name" in ref else "uri": theirs}
        for name in ("explain", "apps__none", "none__explain"):
            assert "error" in await native.answer("prompts/get", name=name)


async def test_beyond_what_may_be_listed(era: Era) -> None:
    apps = {**app(), "native": {"tools": ["hello", "t*"]}}
    async with natively(era, {"raw": raw(), "apps": apps}, native={"max_tools": 5}) as native:
        tools = [name for name in await native.tools() if "__" in name]
        assert tools[:3] == ["raw__echo", "raw__unknown_content", "raw__structured_only"]
        assert tools[3:] == ["apps__touch", "apps__hello"]
        assert (await native.call("apps__chart"))["structuredContent"]["n"] == 1


async def test_a_lost_server_keeps_its_tools_and_a_call_says_when_it_comes_back() -> None:
    slow = {"base_delay_ms": 600_000, "max_delay_ms": 600_000}
    async with natively("handshake", {"raw": {**raw(), "restart": slow}}) as native:
        before = await native.tools()
        lost = await native.call("raw__exit")
        assert "await_activity tells when the server is back" in lost["content"][0]["text"]
        assert await native.tools() == before
        # Whoever calls one of them does not wait for that.
        assert "isError" not in await native.call("raw__echo", text="back")


async def test_pages_of_what_is_long() -> None:
    async with natively(
        "handshake", {"raw": raw("--resources", 30_000, "--page", 30_000)}
    ) as native:
        first = await native.ask("resources/list")
        assert len(first["resources"]) > 1000
        cursor, uris = first["nextCursor"], [each["uri"] for each in first["resources"]]
        while cursor is not None:
            page = await native.ask("resources/list", cursor=cursor)
            uris += [each["uri"] for each in page["resources"]]
            cursor = page.get("nextCursor")
        assert len(uris) == len({*uris}) == 30_000
        assert (await native.fails("resources/list", cursor="x"))["code"] == -32602


async def test_on_pipes(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"apps": app()}}), "utf-8")
    words = ("stdio", "--view", "native", "--config", str(config))
    async with open_pipes(tmp_path / "log", *words) as lines:
        hello = await lines.initialize()
        assert hello["result"]["capabilities"]["tools"] == {"listChanged": True}
        answer = await lines.request(2, "tools/list")
        assert answer["result"]["tools"][0]["name"] == "apps__chart"
        said = await lines.call(3, "apps__chart")
        assert said.content[0]["uri"] == "apps+file:///chart.csv"
        await lines.call(4, "apps__change")
        while (told := await lines.receive()) is not None and "id" in told:
            pass
        assert told == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
