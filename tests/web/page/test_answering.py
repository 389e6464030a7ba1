from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from mcp import MCPError
from trio.testing import wait_all_tasks_blocked

from emceepee_trio.backend.connections.callbacks import Abandoned, Kind
from emceepee_trio.config import Limits
from emceepee_trio.session.questions.answers import ANSWERS
from emceepee_trio.session.session import Session
from page_world import JSON, Browser, PageWorld, csrf_of, open_page

NAME = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}},
        "required": ["name"],
    },
}
YES_OR_NO = {
    "message": "Shall I?",
    "requestedSchema": {"type": "object", "properties": {"go": {"type": "boolean"}}},
}
PAGE = {"mode": "url", "message": "Log in", "url": "https://x.test/p?q=1#f", "elicitationId": "e"}
SAMPLE = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "capital of <France>?"}},
        {
            "role": "assistant",
            "content": {"type": "image", "data": "AAAA"},
        },
    ],
    "systemPrompt": "Be brief.",
    "maxTokens": 10,
}


def gone() -> Abandoned:
    return "call_ended"


@attrs.define(eq=False)
class Desk:
    """A session whose servers ask what a test wants, and a browser that is logged in."""

    world: PageWorld
    session: Session
    browser: Browser
    nursery: trio.Nursery
    outcomes: list[Any] = attrs.field(factory=list)
    """What servers are told."""

    async def ask(self, params: dict[str, Any], kind: Kind = "elicitation") -> str:
        """Where it is answered."""
        self.nursery.start_soon(self._ask, kind, params)
        await wait_all_tasks_blocked()
        asked = (await self.browser.json("/api/now"))["questions"][-1]
        return f"/questions/{asked['session']}/{asked['question']}"

    async def _ask(self, kind: Kind, params: dict[str, Any]) -> None:
        try:
            self.outcomes.append(await self.session.ask("files", kind, params, gone))
        except MCPError as error:
            self.outcomes.append(error.error.message)

    async def answer(self, path: str, **fields: str) -> None:
        answer = await self.browser.submit(path, path, **fields)
        assert answer.status == 303, answer.body
        await wait_all_tasks_blocked()


@asynccontextmanager
async def desk(token: str = "minted", **limits: int) -> AsyncGenerator[Desk]:
    async with open_page(limits=Limits(**limits)) as world, trio.open_nursery() as nursery:
        session = await world.session()
        yield Desk(world, session, await world.logged_in(token), nursery)
        nursery.cancel_scope.cancel("the test is over")


async def test_a_form_is_answered_as_by_the_tool() -> None:
    async with desk() as here:
        path = await here.ask(NAME)
        page = await here.browser.page(path)
        assert "files asks you" in page
        assert "Who are you?" in page
        await here.answer(path, f0="Ada")
        assert here.outcomes == [{"action": "accept", "content": {"name": "Ada"}}]
        told = here.session.events.recent("files", 5)[-1]
        assert (told["type"], told["data"]["by"]) == ("elicitation_answered", "operator")


async def test_what_does_not_fit_is_shown_again_with_what_is_wrong() -> None:
    async with desk() as here:
        path = await here.ask(NAME)
        answer = await here.browser.submit(path, path, f0="A")
        assert answer.status == 400
        page = answer.body.decode()
        assert "name: &#39;A&#39; is too short" in page
        assert 'value="A"' in page
        assert here.outcomes == []
        await here.answer(path, f0="Ada")
        assert here.outcomes == [{"action": "accept", "content": {"name": "Ada"}}]


async def test_yes_or_no_takes_one_click_on_the_first_screen() -> None:
    async with desk() as here:
        path = await here.ask(YES_OR_NO)
        first = await here.browser.page("/")
        assert f'action="{path}"' in first
        assert '<button class="main" name="f0" value="0">Yes</button>' in first
        answer = await here.browser.submit("/", path, f0="1")
        assert answer.status == 303
        await wait_all_tasks_blocked()
        assert here.outcomes == [{"action": "accept", "content": {"go": False}}]


OPTIONS = [f"option {n}" for n in range(500)]
CHOSEN = {"type": "array", "items": {"enum": OPTIONS}, "default": ["option 7", *["x"] * 2000]}
BEFORE_ALL_DAYS = {
    "type": "string",
    "format": "date-time",
    "default": "0001-01-01T00:00:00+14:00",
}


@pytest.mark.parametrize(
    "properties",
    [
        {"day": BEFORE_ALL_DAYS},
        {"numbers": {"type": "object", "default": {"": [7] * 200_000}}},
        {f"p{n}": CHOSEN for n in range(100)},
        {f"p{n}": {"enum": OPTIONS} for n in range(200)},
    ],
    ids=["a day that no zone knows", "a long default", "many chosen", "many options"],
)
async def test_no_form_breaks_a_page_or_has_others_wait(properties: dict[str, Any]) -> None:
    async with desk() as here:
        asked = {"message": "?", "requestedSchema": {"type": "object", "properties": properties}}
        path = await here.ask(asked)
        assert f'action="{path}"' in await here.browser.page("/")
        assert "files asks you" in await here.browser.page(path)
        await here.answer(path, decline="1")


async def test_a_day_that_no_zone_knows_is_left_to_the_server() -> None:
    async with desk() as here:
        properties = {"day": {"type": "string"} | {"format": "date-time"}}
        asked = {"message": "?", "requestedSchema": {"type": "object", "properties": properties}}
        path = await here.ask(asked)
        answer = await here.browser.submit(path, path, f0="0001-01-01T00:00:00+14:00")
        assert answer.status in (303, 400)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_nobody_has_to_answer(action: str) -> None:
    async with desk() as here:
        for params in (NAME, PAGE):
            await here.answer(await here.ask(params), **{action: "1"})
        assert here.outcomes == [{"action": action}] * 2


async def test_a_page_is_shown_with_its_whole_address_before_anybody_goes_there() -> None:
    async with desk() as here:
        path = await here.ask(PAGE)
        page = await here.browser.page(path)
        assert f"<code>{PAGE['url']}</code>" in page
        assert 'rel="noopener noreferrer"' in page
        await here.answer(path, accept="1")
        assert here.outcomes == [{"action": "accept"}]


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "http://", "//x.test", "http://[x"]
)
async def test_what_is_no_page_is_no_link(url: str) -> None:
    async with desk() as here:
        page = await here.browser.page(await here.ask(PAGE | {"url": url}))
        assert f'href="{url}"' not in page
        assert "so it is not a link" in page


async def test_a_person_answers_for_a_model() -> None:
    async with desk() as here:
        path = await here.ask(SAMPLE, "sampling")
        page = await here.browser.page(path)
        assert "capital of &lt;France&gt;?" in page
        assert "Be brief." in page
        assert "[image that is not shown here]" in page
        await here.answer(path, text="Paris\r\n")
        assert here.outcomes == [
            {
                "role": "assistant",
                "content": {"type": "text", "text": "Paris\n"},
                "model": "a person",
                "stopReason": "endTurn",
            }
        ]
        await here.answer(await here.ask(SAMPLE, "sampling"), decline="1")
        assert here.outcomes[1] == "refused by a person"


async def test_the_first_answer_counts() -> None:
    async with desk() as here:
        path = await here.ask(NAME)
        csrf = csrf_of(await here.browser.get(path))
        (question,) = here.session.questions.open("elicitation")
        here.session.questions.answer(question, ANSWERS["accept"], {"action": "accept"})
        late = await here.browser.post(path, csrf=csrf, f0="Ada")
        assert late.status == 404
        assert "no longer open: accepted" in late.body.decode()
        await wait_all_tasks_blocked()
        assert here.outcomes == [{"action": "accept"}]


async def test_programs_answer_as_json() -> None:
    async with desk() as here:
        path = await here.ask(NAME)
        shown = await here.browser.json(f"/api{path}")
        assert shown["requestedSchema"] == NAME["requestedSchema"]
        bearer = f"\nAuthorization: Bearer minted{JSON}\nContent-Type: application/json"
        ask = partial(here.world.ask, f"POST /api{path}", bearer)
        for wrong in ("[]", '{"action": "maybe"}', '{"action": "accept", "content": 3}'):
            refused = await ask(wrong)
            assert refused.status == 400, refused
            assert "message" in json.loads(refused.body)["error"]
        right = await ask(json.dumps({"action": "accept", "content": {"name": "Ada"}}))
        assert right.status == 200
        await wait_all_tasks_blocked()
        assert here.outcomes == [{"action": "accept", "content": {"name": "Ada"}}]


async def test_a_principal_sees_and_answers_what_is_its_own() -> None:
    async with desk("s3cret") as here:
        theirs = await here.world.session("bob/main", "bob")
        path = await here.ask(NAME)
        operator = await here.world.logged_in()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(theirs.ask, "files", "elicitation", NAME, gone))
            await wait_all_tasks_blocked()
            seen = await here.browser.json("/api/now")
            assert [each["label"] for each in seen["questions"]] == ["ada/main"]
            both = (await operator.json("/api/now"))["questions"]
            assert [each["label"] for each in both] == ["ada/main", "bob/main"]
            other = f"/questions/{both[1]['session']}/{both[1]['question']}"
            csrf = csrf_of(await here.browser.get(path))
            assert (await here.browser.get(other)).status == 404
            assert (await here.browser.post(other, csrf=csrf, f0="Eve")).status == 404
            # Nor by the name of a session of one's own.
            mixed = f"/questions/{seen['questions'][0]['session']}/{both[1]['question']}"
            assert (await here.browser.get(mixed)).status == 404
            nursery.cancel_scope.cancel("seen")
        await here.answer(path, f0="Ada")
        told = here.session.events.recent("files", 5)[-1]
        assert told["data"]["by"] == "ada, on the page"


EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m\ud800'


async def test_whatever_servers_write_is_shown_as_they_wrote_it() -> None:
    async with desk() as here:
        here.session.client_name = EVIL
        properties = {
            EVIL: {"type": "string", "title": EVIL, "description": EVIL, "default": EVIL},
            "one": {"type": "string", "enum": [EVIL], "enumNames": [EVIL]},
            "two": {"type": "object", "default": {EVIL: EVIL}, "title": EVIL},
            "odd": {"type": EVIL, "minimum": EVIL, "maxLength": EVIL, "format": EVIL, "enum": 3},
            "none": EVIL,
        }
        evil = {"message": EVIL, "requestedSchema": {"properties": properties, "required": EVIL}}
        paths = [await here.ask(evil), await here.ask(PAGE | {"url": EVIL, "message": EVIL})]
        sample = {"messages": [{"role": EVIL, "content": {"type": EVIL}}], "systemPrompt": EVIL}
        paths.append(await here.ask(sample, "sampling"))
        for path in ("/", *paths):
            page = await here.browser.page(path)
            assert "<script>alert" not in page
            assert "<img src=x" not in page
            assert "&lt;script&gt;alert(1)" in page
            assert "\ud800" not in page


async def test_a_bug_of_the_page_is_logged_and_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(asked: object) -> None:
        raise RuntimeError("a secret")

    async with desk() as here:
        await here.ask(NAME)
        monkeypatch.setattr("emceepee_trio.web.page.now.quick", crash)
        answer = await here.browser.get("/")
        assert answer.status == 500
        assert b"secret" not in answer.body
        (record,) = [each for each in caplog.records if each.message == "request_crashed"]
        assert vars(record)["fields"]["log_id"] in answer.body.decode()
        monkeypatch.undo()
        assert "files asks" in await here.browser.page("/")


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.test\\@good.test/",
        "https://good.test%00.evil.test/",
        "https://good.test\u2044@evil.test",
        "javascript://good.test/%0aalert(1)",
        "https:evil.test",
    ],
)
async def test_an_address_that_browsers_may_read_in_another_way_is_no_link(url: str) -> None:
    async with desk() as here:
        page = await here.browser.page(await here.ask({**PAGE, "url": url}))
        assert "so it is not a link" in page
        assert "_blank" not in page
