"""What a person does with the page, in a real browser, with a real daemon and real servers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import pytest
from playwright.sync_api import Page, expect

from browsing import (
    DESK,
    PHONE,
    YES_OR_NO,
    Chromium,
    HttpClient,
    Window,
    chromium,
    link,
    obstacles,
    window,
)
from fake_backends import demo, raw
from served import serve

pytestmark = pytest.mark.once
TOKEN = "token-of-the-page"

BROKEN = "import sys; print('no module <b>left-pad</b>', file=sys.stderr); sys.exit(3)"


@attrs.frozen
class Here:
    browser: Chromium
    url: str

    @contextmanager
    def client(self, name: str = "claude-code") -> Iterator[HttpClient]:
        client = HttpClient(f"{self.url}/mcp", TOKEN, name)
        try:
            yield client
        finally:
            client.end()

    def open(self, window: Window, path: str = "/") -> Page:
        """Logged in by a link."""
        page = window.open(link(f"{self.url}/mcp", TOKEN))
        page.wait_for_url(f"{self.url}/")
        if path != "/":
            page.goto(f"{self.url}{path}")
        return page


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    broken = {"command": sys.executable, "args": ["-c", BROKEN]}
    servers = {"demo": demo(), "raw": raw(), "broken": broken}
    config.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    with (
        chromium() as browser,
        serve(folder, "--config", str(config), EMCEEPEE_TOKEN=TOKEN) as daemon,
    ):
        yield Here(browser, daemon.url.removesuffix("/mcp"))


def test_a_question_comes_while_one_looks_and_is_answered(here: Here) -> None:
    with here.client() as client, window(here.browser) as person:
        page = here.open(person)
        expect(page.get_by_text("Nothing is under way")).to_be_visible()
        task = client.begin("raw", "string_id_question")
        page.get_by_role("link", name="Answer", exact=True).click()
        page.get_by_label("name").fill("Ada")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_text("raw has your answer")).to_be_visible()
        assert json.loads(client.result(task)) == {"action": "accept", "content": {"name": "Ada"}}
        expect(page.get_by_text("Nothing is under way")).to_be_visible()
        assert "notice" not in page.url


def test_yes_or_no_is_one_click_away(here: Here) -> None:
    with here.client() as client, window(here.browser) as person:
        task = client.begin("raw", "ask", params=YES_OR_NO)
        page = here.open(person)
        page.get_by_role("button", name="Yes").click()
        assert json.loads(client.result(task)) == {"action": "accept", "content": {"go": True}}


def test_one_sees_why_a_call_is_stuck_and_ends_it(here: Here) -> None:
    with here.client() as client, window(here.browser) as person:
        stuck = client.begin("raw", "never")
        page = here.open(person)
        row = page.locator(f"#call-{stuck}")
        expect(row).to_contain_text("an answer of raw")
        expect(page.locator("#servers")).to_contain_text("no module <b>left-pad</b>")
        row.get_by_role("link", name="in detail").click()
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Cancel it").click()
        expect(page.get_by_text("is cancelled; its server is told")).to_be_visible()
        expect(page.get_by_text("Nothing is under way")).to_be_visible()
        assert client.call("get_task", task_id=stuck)["task"]["status"] == "cancelled"


def test_what_one_is_filling_in_stays_while_other_things_change(here: Here) -> None:
    with here.client() as client, window(here.browser) as person:
        task = client.begin("raw", "string_id_question")
        page = here.open(person)
        page.get_by_role("link", name="Answer", exact=True).click()
        page.get_by_label("name").fill("Ad")
        with page.expect_response(lambda answer: "/questions/" in answer.url):
            client.begin("raw", "never")
        page.get_by_label("name").press("End")
        page.keyboard.type("a")
        page.get_by_role("button", name="Send").click()
        assert json.loads(client.result(task))["content"] == {"name": "Ada"}


def test_one_hears_that_somebody_else_was_first(here: Here) -> None:
    with here.client() as client, window(here.browser) as person:
        client.begin("raw", "string_id_question")
        page = here.open(person)
        page.get_by_role("link", name="Answer", exact=True).click()
        page.get_by_label("name").fill("Ada")
        (question,) = client.call("get_elicitations")["elicitations"]
        client.call("respond_to_elicitation", request_id=question["requestId"], action="decline")
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("alert")).to_contain_text("no longer open: declined")


def test_a_link_on_a_page_of_somebody_else_takes_a_click(here: Here) -> None:
    with window(here.browser) as person:
        page = person.open("about:blank")
        url = link(f"{here.url}/mcp", TOKEN)
        page.set_content(f'<a href="{url}">Look at this</a>')
        page.get_by_role("link", name="Look at this").click()
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{here.url}/")
        expect(page.get_by_role("heading", name="Now")).to_be_visible()


def test_it_works_without_scripts(here: Here) -> None:
    with here.client() as client, window(here.browser, java_script_enabled=False) as person:
        task = client.begin("raw", "ask", params=YES_OR_NO)
        while not client.call("get_elicitations")["elicitations"]:  # the page does not change
            client.call("await_activity")
        page = person.open(here.url)
        page.get_by_label("Token of the daemon").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("button", name="No", exact=True).click()
        expect(page.get_by_text("raw has your answer")).to_be_visible()
        assert json.loads(client.result(task)) == {"action": "accept", "content": {"go": False}}
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_server_is_added_tried_edited_and_removed(here: Here) -> None:
    with window(here.browser) as person:
        page = here.open(person, "/servers")
        page.get_by_role("link", name="Add a server").click()
        page.get_by_label("Name", exact=True).fill("mine")
        command = " ".join([raw()["command"], *raw()["args"]])
        page.get_by_label("Command line, or URL").fill(command)
        page.get_by_role("button", name="Add").click()
        page.get_by_role("link", name="Tools").click()
        page.get_by_role("link", name="stderr", exact=True).click()
        page.get_by_text("All arguments as JSON").click()
        page.locator("#json").fill('{"line": "was here", "n": 1}')
        page.get_by_role("button", name="Call it").click()
        expect(page.get_by_text("completed")).to_be_visible()
        page.goto(f"{here.url}/servers/mine/logs")
        expect(page.get_by_role("log")).to_contain_text("was here 0")
        page.goto(f"{here.url}/servers/mine")
        page.get_by_role("link", name="Edit").click()
        page.get_by_text("Other settings").click()
        page.get_by_label("As JSON").fill('{"description": "of my own"}')
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("mine is changed, in all sessions.")).to_be_visible()
        expect(page.get_by_text("of my own", exact=False).first).to_be_visible()
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Remove").click()
        expect(page.get_by_text("mine is removed")).to_be_visible()


def test_a_log_is_followed(here: Here) -> None:
    with here.client() as client, window(here.browser) as person:
        page = here.open(person, "/servers/raw/logs")
        client.begin("raw", "stderr", line="first", n=1)
        expect(page.get_by_role("log")).to_contain_text("first 0")
        client.begin("raw", "stderr", line="second", n=1)
        expect(page.get_by_role("log")).to_contain_text("second 0")


PAGES = [
    *("/", "/servers", "/servers/raw", "/servers/raw/logs", "/servers/raw/edit", "/tasks"),
    *("/servers/demo/tools", "/servers/demo/tools/slow", "/nothing"),
]


@pytest.mark.parametrize(("scheme", "size"), [("light", DESK), ("dark", PHONE)])
def test_nothing_keeps_anybody_from_using_it(here: Here, scheme: str, size: dict[str, int]) -> None:
    look = {"color_scheme": scheme, "viewport": size}
    with here.client("cursor") as client, window(here.browser, **look) as person:
        client.begin("raw", "trigger_elicitation_request")
        client.begin("raw", "sample_question")
        client.begin("demo", "ask_url")
        client.begin("raw", "never")
        client.begin("raw", "stderr", line="a line", n=1)
        page = here.open(person)
        expect(page.locator("article.asks")).to_have_count(3)
        answers = page.locator("article.asks a.main")
        paths = [str(each.get_attribute("href")) for each in answers.all()]
        call = page.get_by_role("link", name="raw/never in detail").get_attribute("href")
        for path in (*PAGES, *paths, str(call)):
            page.goto(f"{here.url}{path}")
            assert obstacles(page) == [], path
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= size["width"], f"{path} is wider than its window"
    with window(here.browser, **look) as person:
        assert obstacles(person.open(f"{here.url}/login")) == []
