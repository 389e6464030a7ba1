from __future__ import annotations

import html
import json
import re
import sys

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.config import OWN, Policy, Server, server_from_arguments
from emceepee_trio.model.states import BackendState
from emceepee_trio.serving.asgi import Message
from fake_backends import HERE, raw
from page_world import JSON, Browser, PageWorld, open_page

RAW = f"{sys.executable} {HERE / 'raw_server.py'}"
SECRET = server_from_arguments(
    {"name": "raw", **raw(), "env": {"TOKEN": "hush"}, "allowed_tools": ["echo", "never"]}
)


async def filled(browser: Browser, path: str) -> dict[str, str]:
    """What the form has in it."""
    page = await browser.page(path)
    assert "hush" not in page
    where = re.search(r'<input id="where"[^>]* value="([^"]*)"', page)
    assert where is not None
    texts = re.findall(r'<textarea id="(\w+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    fields = {"where": where[1], **dict(texts)}
    return {name: html.unescape(value) for name, value in fields.items()}


async def entry(world: PageWorld, name: str = "raw") -> dict[str, object]:
    browser = await world.logged_in()
    said = await browser.json(f"/servers/{name}")
    return {key: said[key] for key in ("changed", "entry", "disabled")}


async def test_a_configured_server_is_edited_and_as_configured_again() -> None:
    async with open_page(servers=[SECRET]) as world:
        browser, session = await world.logged_in(), await world.session()
        await session.backend("raw").connection()
        fields = await filled(browser, "/servers/raw/edit")
        assert fields["more"] == "TOKEN=***"
        assert json.loads(fields["settings"]) == {"allowed_tools": ["echo", "never"]}
        fields |= {"more": "TOKEN=***\nMORE=1", "settings": '{"description": "Mine"}'}
        answer = await browser.submit("/servers/raw/edit", "/servers/raw/edit", **fields)
        assert answer.status == 303, answer.body
        now = session.backend("raw").server
        assert (now.env, now.allowed_tools) == ({"TOKEN": "hush", "MORE": "1"}, None)
        await session.backend("raw").connection()
        page = await browser.page(answer.headers["location"])
        assert "It is edited here" in page
        assert "hush" not in page
        # What is written next is what is configured, so it is no change.
        await browser.submit("/servers/raw", "/servers/raw/restore")
        assert session.backend("raw").server == world.manager.config.servers[0]
        assert (await entry(world))["changed"] is None


async def test_what_is_changed_here_is_said_to_end_with_the_daemon() -> None:
    async with open_page(servers=[SECRET]) as world:
        browser = await world.logged_in()
        assert "lasts until the daemon ends" in await browser.page("/servers/raw")
        await browser.submit("/servers/raw", "/servers/raw/disable")
        page = await browser.page("/servers/raw")
        assert "It is disabled here" in page
        assert "To keep it, write this into the configuration" in page
        await browser.submit("/servers/raw", "/servers/raw/enable")
        assert (await entry(world))["changed"] is None
        await browser.submit("/servers/raw", "/servers/raw/remove")
        assert "Removed here" in await browser.page("/servers")
        assert (await browser.json("/servers"))["removed"] == ["raw"]
        await browser.submit("/servers", "/servers/raw/restore")
        assert (await browser.json("/servers"))["removed"] == []
        assert (await browser.post("/servers/raw/restore")).status == 403


async def test_an_edit_stays_at_a_reload_unless_its_entry_is_another() -> None:
    async with open_page(servers=[SECRET]) as world:
        browser, session = await world.logged_in(), await world.session()
        fields = await filled(browser, "/servers/raw/edit") | {"more": "A=1"}
        await browser.submit("/servers/raw/edit", "/servers/raw/edit", **fields)
        edited = session.backend("raw").server
        world.manager.reload(world.manager.config)
        assert session.backend("raw").server == edited
        await browser.submit("/servers/raw", "/servers/raw/disable")
        assert session.backend("raw").state is BackendState.DISABLED
        assert (await entry(world))["changed"] == "edited"


async def test_who_has_added_a_server_edits_it() -> None:
    async with open_page() as world:
        ada, session = await world.logged_in("s3cret"), await world.session()
        added = {"name": "mine", "where": f"{RAW} --token hush", "more": "KEY=hush"}
        await ada.submit("/add-server", "/servers", **added)
        fields = await filled(ada, "/servers/mine/edit")
        assert fields["where"].endswith("--token ***")
        fields["where"] = fields["where"].replace("--token", "--tools 1 --token")
        answer = await ada.submit("/servers/mine/edit", "/servers/mine/edit", **fields)
        assert answer.status == 303, answer.body
        server = session.backend("mine").server
        assert server.args[1:] == ("--tools", "1", "--token", "hush")
        assert server.env == {"KEY": "hush"}
        operator = await world.logged_in()
        fields |= {"settings": '{"description": "looked at"}'}
        await operator.submit("/servers/mine/edit", "/servers/mine/edit", **fields)
        assert session.backend("mine").server.description == "looked at"
        assert (await operator.json("/servers/mine"))["owner"] == "ada"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"where": "run 'it"}, "cannot be read"),
        ({"settings": "{"}, "no JSON"),
        ({"settings": "[]"}, "JSON object"),
        ({"settings": '{"env": {}}'}, "not one of the other settings: env"),
        ({"settings": '{"strat": "lazy"}'}, "start"),
        ({"name": "other"}, "keeps its name"),
        ({"where": "https://h.example/mcp", "more": "X: ***"}, "stands for what is not shown"),
    ],
)
async def test_what_cannot_be_is_shown_again_with_the_reason(
    fields: dict[str, str], words: str
) -> None:
    async with open_page(servers=[SECRET]) as world:
        browser, path = await world.logged_in(), "/servers/raw/edit"
        given = {"name": "raw", **(await filled(browser, path)), **fields}
        answer = await browser.submit(path, path, **given)
        said = html.unescape(answer.body.decode())
        assert (answer.status, words in said) == (400, True), said
        assert given["where"] in said
        assert (await entry(world))["changed"] is None


async def test_a_program_is_not_replaced_where_clients_may_start_none() -> None:
    async with open_page(servers=[SECRET], policy=Policy(spawn="deny")) as world:
        browser, path = await world.logged_in(), "/servers/raw/edit"
        fields = await filled(browser, path)
        # What starts nothing else may be changed.
        answer = await browser.submit(path, path, **{**fields, "settings": "{}"})
        assert answer.status == 303, answer.body[-900:]
        fields = await filled(browser, path)
        for change in ({"where": "sh -c 'echo $TOKEN'"}, {"more": "LD_PRELOAD=x\nTOKEN=***"}):
            assert (await browser.submit(path, path, **{**fields, **change})).status == 403


async def test_a_url_that_was_edited_is_restricted_as_one_that_was_added() -> None:
    server = Server("web", url="http://127.0.0.1:9/mcp")
    async with open_page(servers=[server]) as world:
        registry = world.manager.registry
        browser, path = await world.logged_in(), "/servers/web/edit"
        assert not registry.restricts("web")
        fields = await filled(browser, path) | {"settings": '{"description": "x"}'}
        await browser.submit(path, path, **fields)
        assert not registry.restricts("web")
        await browser.submit(path, path, where="http://127.0.0.1:10/mcp")
        assert registry.restricts("web")


async def test_who_does_not_run_the_daemon_edits_nothing_that_is_everybodys() -> None:
    async with open_page(servers=[SECRET]) as world:
        ada = await world.logged_in("s3cret")
        page = await ada.page("/servers/raw")
        assert ("/edit" in page, "Remove" in page) == (False, True)
        assert (await ada.json("/servers/raw"))["entry"] is None
        assert (await ada.get("/servers/raw/edit")).status == 403
        more = "TOKEN=***"
        assert (await ada.submit("/", "/servers/raw/edit", where=RAW, more=more)).status == 403


async def test_where_the_operator_says_so_others_change_nothing_that_is_everybodys() -> None:
    policy = Policy(spawn="allow", configured="operator")
    async with open_page(servers=[SECRET], policy=policy) as world:
        ada, operator = await world.logged_in("s3cret"), await world.logged_in()
        page = await ada.page("/servers/raw")
        assert ("Disable" in page, "Remove" in page) == (False, False)
        for act in ("disable", "remove"):
            answer = await ada.submit("/", f"/servers/raw/{act}")
            assert answer.status == 403
            assert b"policy.configured" in answer.body
        await operator.submit("/servers/raw", "/servers/raw/remove")
        assert "Restore" not in await ada.page("/servers")
        assert (await ada.submit("/", "/servers/raw/restore")).status == 403
        assert (await operator.submit("/", "/servers/raw/restore")).status == 303


async def test_a_program_edits_a_server_as_json() -> None:
    async with open_page(servers=[SECRET]) as world:
        bearer = f"\nAuthorization: Bearer minted{JSON}\nContent-Type: application/json"
        change = {"description": "Mine", "allowedTools": None}
        answer = await world.ask("POST /api/servers/raw/edit", bearer, json.dumps(change))
        assert json.loads(answer.body) == {"done": "raw is changed, in all sessions."}
        said = (await entry(world))["entry"]
        assert isinstance(said, dict)
        assert (said["description"], said["env"]) == ("Mine", {"TOKEN": "***"})
        assert "allowed_tools" not in said
        for wrong in ("[]", '{"cmd": 1}', '{"description": 5}'):
            refused = await world.ask("POST /api/servers/raw/edit", bearer, wrong)
            assert refused.status == 400, wrong


async def test_an_edit_is_of_what_is_there_when_all_of_it_has_come() -> None:
    async with open_page(servers=[SECRET]) as world:
        sent: list[Message] = []
        wants = [(b"authorization", b"Bearer minted"), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/api/servers/raw/edit",
            "raw_path": b"/api/servers/raw/edit",
            "query_string": b"",
            "headers": [(b"host", world.host.encode()), *wants],
        }
        bodies = [json.dumps({"allowedTools": None}).encode()]

        async def receive() -> Message:
            if not bodies:
                await trio.sleep_forever()
            await wait_all_tasks_blocked()  # whoever does without the body has gone on
            theirs = attrs.evolve(SECRET, description="Theirs")
            world.manager.servers.edit(OWN, theirs, "operator", {})
            return {"type": "http.request", "body": bodies.pop(), "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await world.app(scope, receive, send)
        assert sent[0]["status"] == 200, sent
        server = world.manager.registry.visible("ada")["raw"]
        assert (server.description, server.allowed_tools) == ("Theirs", None)


async def test_who_does_not_run_the_daemon_takes_no_edit_back() -> None:
    async with open_page(servers=[SECRET]) as world:
        ada, operator = await world.logged_in("s3cret"), await world.logged_in()
        fields = await filled(operator, "/servers/raw/edit") | {"settings": "{}"}
        await operator.submit("/servers/raw/edit", "/servers/raw/edit", **fields)
        assert "As configured" not in await ada.page("/servers/raw")
        assert (await ada.submit("/", "/servers/raw/restore")).status == 403
        await ada.submit("/servers/raw", "/servers/raw/remove")
        back = await ada.submit("/servers", "/servers/raw/restore")
        assert "raw is as it was" in await ada.page(back.headers["location"])
        assert (await entry(world))["changed"] == "edited"
        await operator.submit("/servers/raw", "/servers/raw/restore")
        assert (await entry(world))["changed"] is None


@pytest.mark.parametrize("more", [{"inherit_env": "all"}, {"roots": ["/"]}])
async def test_how_far_a_server_may_go_is_said_in_the_configuration_only(more: object) -> None:
    async with open_page(servers=[SECRET]) as world:
        browser, settings = await world.logged_in(), json.dumps(more)
        edited = {**(await filled(browser, "/servers/raw/edit")), "settings": settings}
        added = {"name": "mine", "where": RAW, "settings": settings}
        for path, fields in (("/servers/raw/edit", edited), ("/servers", added)):
            answer = await browser.submit("/add-server", path, **fields)
            assert (answer.status, b"in the configuration only" in answer.body) == (400, True)
