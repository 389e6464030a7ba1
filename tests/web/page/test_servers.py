from __future__ import annotations

import json
import re
import sys
from typing import Any
from urllib.parse import urljoin

import pytest
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.config import Policy, Server
from emceepee_trio.model.states import BackendState
from fake_backends import HERE, demo, raw, until
from memory_peers import scripted
from page_world import JSON, open_page
from play import RESULTS

RAW = f"{sys.executable} {HERE / 'raw_server.py'}"


async def test_servers_are_listed_with_their_states() -> None:
    servers = [Server("raw", **raw()), Server("off", command="x", disabled=True)]
    async with open_page(servers=servers) as world:
        browser = await world.logged_in()
        assert "no session has it yet" in await browser.page("/servers")
        session = await world.session()
        await session.backend("raw").connection()
        one, off = (await browser.json("/servers"))["servers"]
        assert (one["name"], one["states"], one["configured"]) == ("raw", {"connected": 1}, True)
        assert off["disabled"]
        shown = (await browser.json("/servers/raw"))["sessions"]
        assert [(each["label"], each["status"]) for each in shown] == [("ada/main", "connected")]
        page = await browser.page("/servers/raw")
        assert "connected" in page
        (path,) = re.findall(r'<a href="(/sessions/[^"]+)">', page)
        assert "Timeline" in await browser.page(path)
        assert (await browser.get("/servers/nobody")).status == 404


async def test_who_shares_a_program_is_named_once_however_often() -> None:
    async with open_page(servers=[Server("raw", **raw(), scope="principal")]) as world:
        sessions = [await world.session(f"ada/{n}") for n in range(4)]
        for n, session in enumerate(sessions):
            session.named("cursor" if n == 3 else "codex")
            await session.backend("raw").connection()
        browser = await world.logged_in()
        assert "shared with codex × 3" in await browser.page("/servers/raw")
        assert re.search(r"shared with (cursor, )?codex × [23]", await browser.page("/"))


async def test_a_server_is_added_by_its_command_line_and_removed() -> None:
    async with open_page() as world:
        browser, session = await world.logged_in("s3cret"), await world.session()
        fields = {"name": "mine", "where": RAW, "more": "TOKEN=hush\n"}
        answer = await browser.submit("/add-server", "/servers", **fields)
        assert answer.headers["location"].startswith("/servers/mine?notice=")
        client = await session.backend("mine").connection()
        assert client.negotiated.server_info["name"]
        said = await browser.page(answer.headers["location"])
        assert "mine is added." in said
        assert "hush" not in said + await browser.page("/servers")
        told = [event["type"] for event in session.events.recent("mine", 9)]
        assert "server_added" in told
        await browser.submit("/servers/mine", "/servers/mine/remove")
        assert "mine" not in session.backends
        assert (await browser.get("/servers/mine")).status == 404


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"name": "x", "where": "run 'it"}, "cannot be read"),
        ({"name": "x", "where": "run", "more": "what"}, "NAME=VALUE"),
        ({"name": "x", "where": "http://h/ x", "more": "a=b"}, "NAME:VALUE"),
        ({"name": "a b", "where": "run"}, "name"),
        ({"name": "raw", "where": "run"}, "is configured"),
        ({"name": "", "where": ""}, "name"),
    ],
)
async def test_what_cannot_be_added_is_shown_again_with_the_reason(
    fields: dict[str, str], words: str
) -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser = await world.logged_in()
        answer = await browser.submit("/add-server", "/servers", **fields)
        assert answer.status == 400, answer
        said = answer.body.decode()
        assert words in said
        assert f'value="{fields["name"]}"' in said


@pytest.mark.parametrize("body", ["[" * 60_000, "{", "\xff", '{"name": NaN}', ""])
async def test_what_is_no_json_is_said_to_be_none(body: str) -> None:
    async with open_page() as world:
        more = f"\nAuthorization: Bearer s3cret{JSON}\nContent-Type: application/json"
        answer = await world.ask("POST /api/servers", more, body)
        assert answer.status == 400
        assert "message" in json.loads(answer.body)["error"]


async def test_who_may_not_start_programs_adds_none() -> None:
    async with open_page(policy=Policy(spawn="deny")) as world:
        browser = await world.logged_in("s3cret")
        fields = {"name": "mine", "where": RAW}
        answer = await browser.submit("/add-server", "/servers", **fields)
        assert answer.status == 403
        assert "policy.spawn" in answer.body.decode()


async def test_a_server_is_disabled_in_all_sessions_and_enabled_again() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser = await world.logged_in()
        sessions = [await world.session(name, name.split("/")[0]) for name in ("ada/a", "bob/b")]
        for session in sessions:
            await session.backend("raw").connection()
        await browser.submit("/servers/raw", "/servers/raw/disable")
        assert [s.backend("raw").state for s in sessions] == [BackendState.DISABLED] * 2
        # Also in those that come.
        later = await world.session("ada/later")
        assert later.backend("raw").state is BackendState.DISABLED
        assert "Enable" in await browser.page("/servers/raw")
        # A configuration that is read again with the same entry leaves it so.
        world.manager.reload(world.manager.config)
        assert later.backend("raw").state is BackendState.DISABLED
        await browser.submit("/servers/raw", "/servers/raw/enable")
        for session in (*sessions, later):
            await session.backend("raw").connection()


async def test_a_server_is_connected_anew_in_one_session() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser = await world.logged_in()
        one, other = await world.session(), await world.session("ada/other")
        before = [await each.backend("raw").connection() for each in (one, other)]
        shown = (await browser.json("/servers/raw"))["sessions"]
        (name,) = [each["session"] for each in shown if each["label"] == "ada/main"]
        await browser.submit("/servers/raw", "/servers/raw/reconnect", session=name)
        await until(lambda: one.backend("raw").client not in (None, before[0]))
        assert other.backend("raw").client is before[1]


async def test_a_tool_is_tried_in_a_session_of_ones_own() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser, session = await world.logged_in(), await world.session()
        assert "echo" in await browser.page("/servers/raw/tools")
        path = "/servers/raw/tools/echo"
        answer = await browser.submit(path, path, json='{"text": "<b>hi</b>"}')
        where = answer.headers["location"]
        assert re.fullmatch(r"/calls/\w+/\w+\?show=result", where)
        call = where.partition("?")[0]

        async def result() -> Any:
            return (await browser.json(f"/api{call}?show=result"))["result"]

        while await result() is None:
            await wait_all_tasks_blocked(0.01)
        assert (await result())["content"][0]["text"] == "<b>hi</b>"
        page = await browser.page(where)
        assert "&lt;b&gt;hi&lt;/b&gt;" in page
        assert (await browser.json(f"/api{call}"))["result"] is None
        assert (await browser.json(f"/api{call}?show=args"))["args"] == {"text": "<b>hi</b>"}
        assert session.calls.tasks() == []
        listed = (await browser.json("/sessions"))["sessions"]
        assert [each["client"] for each in listed] == ["this page"]
        for wrong in ("[]", "{", '{"x": NaN}'):
            assert (await browser.submit(path, path, json=wrong)).status == 400
        assert (await browser.get("/servers/raw/tools/nothing")).status == 404


async def test_arguments_and_results_can_be_switched_off() -> None:
    async with open_page(servers=[Server("raw", **raw())], payloads=False) as world:
        browser = await world.logged_in()
        path = "/servers/raw/tools/never"
        where = (await browser.submit(path, path, json='{"hush": "hush"}')).headers["location"]
        assert "show" not in where
        for asked in (where, f"/api{where}"):
            assert (await browser.get(f"{asked}?show=args")).status == 403
            assert b"hush" not in (await browser.get(asked)).body
        assert "page.payloads" in await browser.page(where)


@pytest.mark.parametrize("payloads", [True, False])
async def test_what_a_server_says_of_its_calls_is_switched_off_as_well(payloads: bool) -> None:
    servers = [Server("raw", **raw()), Server("demo", **demo())]
    async with open_page(servers=servers, payloads=payloads) as world:
        browser = await world.logged_in()
        for path, args in (
            ("/servers/raw/tools/rpc_error", {"message": "hush of an error"}),
            ("/servers/demo/tools/slow", {"seconds": 600, "steps": 1000}),
        ):
            assert (await browser.submit(path, path, json=json.dumps(args))).status == 303
        (session,) = world.manager.sessions()
        tasks = {task.tool: task for task in session.calls.tasks()}
        failed, slow = tasks["rpc_error"], tasks["slow"]
        await until(lambda: failed.error is not None and bool(slow.status_message))
        name = (await browser.json("/tasks"))["tasks"][0]["session"]
        paths = ["/", "/tasks", *(f"/calls/{name}/{task.task_id}" for task in (failed, slow))]
        shown = ""
        for path in paths:
            shown += await browser.page(path) + json.dumps(await browser.json(path))
        for text in ("hush of an error", r"step \d+ of 1000"):
            assert bool(re.search(text, shown)) is payloads, text


async def test_a_call_is_cancelled() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser = await world.logged_in()
        path = "/servers/raw/tools/never"
        where = (await browser.submit(path, path)).headers["location"].partition("?")[0]
        assert "Cancel it" in await browser.page(where)
        (task,) = (await browser.json("/tasks"))["tasks"]
        assert (task["tool"], task["status"]) == ("never", "working")
        await browser.submit(where, f"{where}/cancel")
        assert (await browser.json(where))["task"]["status"] == "cancelled"


async def test_what_a_server_writes_is_shown_oldest_first() -> None:
    async with open_page(servers=[Server("raw", **raw())]) as world:
        browser, path = await world.logged_in(), "/servers/raw/tools/stderr"
        args = {"line": "<i>\x1b[31m\u202e", "n": 3}
        await browser.submit(path, path, json=json.dumps(args))

        async def lines() -> list[str]:
            return [each["data"] for each in (await browser.json("/servers/raw/logs"))["logs"]]

        while len(await lines()) < 3:
            await wait_all_tasks_blocked(0.01)
        assert await lines() == [f"<i>\x1b[31m\u202e {n}" for n in range(3)]
        page = await browser.page("/servers/raw/logs")
        assert "&lt;i&gt;\\u001b[31m\\u202e 0" in page


async def test_a_principal_neither_sees_nor_changes_the_servers_of_another() -> None:
    async with open_page() as world:
        ada, bob = await world.logged_in("s3cret"), await world.session("bob/main", "bob")
        world.manager.servers.offer("bob", Server("his", **raw("--exit-at-once", 3)), "bob", {})
        assert (await ada.json("/servers"))["servers"] == []
        assert (await ada.get("/servers/his")).status == 404
        for act in ("remove", "disable", "reconnect"):
            assert (await ada.submit("/", f"/servers/his/{act}")).status == 404
        operator = await world.logged_in()
        (seen,) = (await operator.json("/servers"))["servers"]
        assert (seen["name"], seen["owner"]) == ("his", "bob")
        # It is in no session of the operator's.
        assert (await operator.get("/servers/his/tools")).status == 404
        await operator.submit("/servers/his", "/servers/his/remove")
        assert "his" not in bob.backends


async def test_a_program_adds_a_server_as_json() -> None:
    async with open_page() as world:
        bearer = f"\nAuthorization: Bearer s3cret{JSON}\nContent-Type: application/json"
        entry = {"name": "mine", "command": "sh", "args": ["-c", "exit 3"]}
        answer = await world.ask("POST /api/servers", bearer, json.dumps(entry))
        assert json.loads(answer.body) == {"done": "mine is added.", "server": "mine"}
        wrong = await world.ask("POST /api/servers", bearer, json.dumps({"name": "x", "cmd": 1}))
        assert wrong.status == 400
        assert "cmd" in json.loads(wrong.body)["error"]["message"]


@pytest.mark.parametrize("name", ["../../../logout", "../../good/tools/echo", "a//b", "..?#"])
async def test_a_tool_with_the_name_of_a_path_is_called_all_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no other, as a browser finds its way."""
    tool = {"name": name, "inputSchema": {"type": "object"}}
    monkeypatch.setitem(RESULTS, "tools/list", {"tools": [tool]})
    with scripted():
        async with open_page(servers=[Server(name, command="x") for name in ("sly", "good")]) as it:
            browser = await it.logged_in()
            listed = await browser.page("/servers/sly/tools")
            (path,) = re.findall(r'href="(/servers/sly/tools/[^"]+)"', listed)
            shown = urljoin("http://h/servers/sly/tools", path).removeprefix("http://h")
            page = await browser.page(shown)
            (action,) = re.findall(r'action="(/servers/[^"]+)"', page)
            asked = urljoin(f"http://h{shown}", action).removeprefix("http://h")
            where = (await browser.submit(shown, asked)).headers["location"].partition("?")[0]
            call = await browser.json(f"/api{where}")
            assert (call["server"], call["tool"]) == ("sly", name)
