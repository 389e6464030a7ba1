from __future__ import annotations

import json
import re

import attrs
import pytest

from emceepee_trio.web import logins
from emceepee_trio.web.logins import Holder, Logins
from emceepee_trio.web.security import Tokens
from emceepee_trio.web.visitors import is_opened_by_hand
from page_world import HTML, JSON, TOKENS, csrf_of, open_page


async def test_a_browser_without_a_login_is_sent_to_the_form_and_back() -> None:
    async with open_page() as world:
        browser = world.browser()
        answer = await browser.get("/servers/x")
        assert (answer.status, answer.headers["location"]) == (303, "/login?next=/servers/x")
        form = await browser.get("/login?next=/servers/x")
        wrong = await browser.post("/login", csrf=csrf_of(form), token="wrong")
        assert wrong.status == 403
        assert "not a token" in wrong.body.decode()
        right = await browser.post(
            "/login", csrf=csrf_of(form), token=" minted ", next="/servers/x"
        )
        assert (right.status, right.headers["location"].split("?")[0]) == (303, "/servers/x")
        assert "Log out" in await browser.page("/")


@pytest.mark.parametrize("path", ["https://evil.example", "//evil.example", "/\\evil", "/\tx", ""])
async def test_a_login_leads_to_a_page_of_ours(path: str) -> None:
    async with open_page() as world:
        browser = world.browser()
        form = await browser.get("/login")
        answer = await browser.post("/login", csrf=csrf_of(form), token="minted", next=path)
        assert answer.headers["location"] == "/"


async def test_the_cookie_is_for_this_page_alone() -> None:
    async with open_page() as world:
        form = await world.browser().get("/login")
        answer = await world.browser().post("/login", csrf=csrf_of(form), token="s3cret")
        name, *marks = answer.headers["set-cookie"].split("; ")
        assert name.startswith(f"emceepee_{world.served.port}=")
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(marks)
        assert "Secure" not in marks
        assert "s3cret" not in answer.headers["set-cookie"]
        more = f"{HTML}\nOrigin: https://{world.host}\nX-Forwarded-Proto: https"
        body = f"csrf={csrf_of(form)}&token=s3cret"
        kind = "\nContent-Type: application/x-www-form-urlencoded"
        proxied = await world.ask("POST /login", more + kind, body)
        assert "Secure" in proxied.headers["set-cookie"]


async def test_a_cookie_opens_no_mcp_and_no_other_daemon() -> None:
    async with open_page() as world:
        browser = await world.logged_in()
        for path in ("/mcp", "/servers/x/mcp"):
            assert (await browser.get(path)).status == 401
        browser.cookie = browser.cookie.replace("=", "=x")
        assert (await browser.get("/", JSON)).status == 401


@pytest.mark.parametrize(
    ("site", "mode", "status"),
    [
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
        ("same-site", "navigate", 200),
        ("same-site", "cors", 401),
        ("same-site", "no-cors", 401),
        ("cross-site", "cors", 401),
    ],
)
async def test_a_page_of_another_port_cannot_use_the_cookie(
    site: str, mode: str, status: int
) -> None:
    async with open_page() as world:
        browser = await world.logged_in()
        more = f"{JSON}\nSec-Fetch-Site: {site}\nSec-Fetch-Mode: {mode}"
        assert (await browser.get("/api/now", more)).status == status


@pytest.mark.parametrize("other", ['a={"b":1}', 'a="b', "a b=c", "a", "path=/", "ä[]=1", "a=b c"])
async def test_cookies_of_other_programs_on_this_machine_close_nothing(other: str) -> None:
    async with open_page() as world:
        browser = await world.logged_in()
        mine = browser.cookie
        name = mine.partition("=")[0]
        for cookies in (f"{other}; {mine}", f"{mine}; {other}", f"{name}=theirs; {mine}"):
            browser.cookie = cookies
            assert (await browser.get("/api/now", JSON)).status == 200, cookies
        browser.cookie = f"x{mine}; {other}"
        assert (await browser.get("/api/now", JSON)).status == 401


BY_HAND = f"{HTML}\nSec-Fetch-Site: none\nSec-Fetch-Mode: navigate"


async def test_a_link_logs_in_one_browser_once() -> None:
    async with open_page() as world:
        path = await world.link()
        browser = world.browser()
        entered = await browser.get(path, BY_HAND)
        assert entered.status == 200
        # No redirect, with which a cookie that is strict would not be sent.
        assert '<meta http-equiv="refresh" content="0;url=/">' in entered.body.decode()
        assert "Log out" in await browser.page("/")
        other = world.browser()
        again = await other.get(path, BY_HAND)
        assert (again.status, other.cookie) == (403, "")
        assert "emceepee open" in again.body.decode()


@pytest.mark.parametrize(
    "more",
    [
        HTML,
        f"{HTML}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate",
        f"{HTML}\nSec-Fetch-Site: same-site\nSec-Fetch-Mode: no-cors",
        f"{HTML}\nSec-Fetch-Site: none\nSec-Fetch-Mode: no-cors",
        f"{BY_HAND}\nSec-Purpose: prefetch",
        f"{BY_HAND}\nPurpose: preview",
    ],
)
async def test_a_link_that_somebody_else_leads_to_takes_a_click(more: str) -> None:
    """A picture of theirs, a link of theirs, or a program that looks where it leads."""
    async with open_page() as world:
        path, browser = await world.link(), world.browser()
        key = path.partition("key=")[2]
        asked = await browser.get(path, more)
        assert (asked.status, browser.cookie) == (200, "")
        csrf = csrf_of(asked)
        foreign = await browser.post("/login", origin="http://evil.example", csrf=csrf, key=key)
        assert (foreign.status, browser.cookie) == (403, "")
        assert (await browser.post("/login", csrf=csrf, key=key)).status == 200
        assert "Log out" in await browser.page("/")
        again = await world.browser().post("/login", csrf=csrf, key=key)
        assert again.status == 403
        assert b"has been used" in again.body


async def test_a_link_from_elsewhere_works_in_a_browser_that_is_logged_in() -> None:
    async with open_page() as world:
        ada = await world.logged_in("s3cret")
        path, mine = await world.link(), ada.cookie
        ada.cookie = ""  # which the browser leaves out where somebody else's page has led it
        more = f"{HTML}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate"
        csrf = csrf_of(await ada.get(path, more))
        ada.cookie = mine
        key = path.partition("key=")[2]
        foreign = await ada.post("/login", origin="http://evil.example", csrf=csrf, key=key)
        assert foreign.status == 403
        assert (await ada.post("/login", csrf=csrf[:-1], key=key)).status == 403
        assert (await ada.post("/login", csrf=csrf, key=key)).status == 200
        assert ada.cookie != mine


async def test_who_logs_out_is_out() -> None:
    async with open_page() as world:
        browser = await world.logged_in()
        kept = browser.cookie
        assert (await browser.submit("/", "/logout")).status == 303
        browser.cookie = kept
        assert (await browser.get("/", JSON)).status == 401


async def test_a_login_ends_with_its_token() -> None:
    async with open_page() as world:
        ada, operator = await world.logged_in("s3cret"), await world.logged_in()
        fewer = Tokens.of([("ada", "changed"), ("token", "minted")])
        world.app.security = attrs.evolve(world.app.security, tokens=fewer)
        assert (await ada.get("/", JSON)).status == 401
        assert (await operator.get("/", JSON)).status == 200


async def test_where_no_token_is_needed_nobody_logs_in() -> None:
    async with open_page(tokens=None) as world:
        assert "Log out" not in await world.browser().page("/")
        made = await world.ask("POST /api/links", f"{JSON}\nContent-Type: application/json", "{}")
        assert json.loads(made.body) == {"path": "/"}


@pytest.mark.parametrize(
    ("site", "mode", "status"),
    [
        ("same-origin", "cors", 200),
        ("none", "navigate", 200),
        ("cross-site", "navigate", 200),
        ("same-site", "no-cors", 403),
        ("cross-site", "no-cors", 403),
    ],
)
async def test_where_no_token_is_needed_pages_of_others_ask_nothing(
    site: str, mode: str, status: int
) -> None:
    """Unless they may call us: what they are shown as pictures they cannot read, but it is done."""
    async with open_page(tokens=None, allowed_origins=("https://app.example",)) as world:
        more = f"\nAccept: */*\nSec-Fetch-Site: {site}\nSec-Fetch-Mode: {mode}"
        for path in ("/api/now", "/status", "/metrics"):
            assert (await world.ask(f"GET {path}", more)).status == status
        welcome = f"{more}\nOrigin: https://app.example"
        assert (await world.ask("GET /status", welcome)).status == 200
        assert (await world.ask("GET /healthz", more)).status == 200


@pytest.mark.parametrize("tokens", [TOKENS, None])
async def test_a_change_is_refused_that_is_not_the_visitors_own_wish(tokens: Tokens | None) -> None:
    async with open_page(tokens=tokens, allowed_origins=("https://app.example",)) as world:
        browser = world.browser() if tokens is None else await world.logged_in()
        csrf = csrf_of(await browser.get("/login"))
        if tokens is not None:
            csrf = csrf_of(await browser.get("/"))
        good = {"csrf": csrf}
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
            assert (await browser.post("/logout", origin=origin, **good)).status == 403
        # May call MCP, but is not the page; and so is what says nothing.
        port = world.served.port
        for other in ("https://app.example", f"http://localhost:{port}", None):
            assert (await browser.post("/logout", origin=other, **good)).status == 403
        for wrong in ({}, {"csrf": ""}, {"csrf": csrf[:-1]}, {"csrf": csrf.upper()}):
            assert (await browser.post("/logout", **wrong)).status == 403
        assert (await browser.post("/logout", **good)).status == 303


async def test_the_csrf_token_of_one_login_is_none_of_another() -> None:
    async with open_page() as world:
        one, other = await world.logged_in(), await world.logged_in("s3cret")
        csrf = csrf_of(await other.get("/"))
        assert (await one.post("/logout", csrf=csrf)).status == 403


async def test_every_page_says_what_it_may_load_and_who_may_show_it() -> None:
    async with open_page() as world:
        browser = await world.logged_in()
        for path in ("/", "/login", "/api/now", "/nothing", "/live-not"):
            answer = await browser.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
        assert (await browser.get("/")).headers["referrer-policy"] == "same-origin"


async def test_below_a_path_of_another_program_all_leads_there() -> None:
    async with open_page(mount="/here") as world:
        browser = world.browser()
        asked = await browser.get("/here/tasks")
        assert asked.headers["location"] == "/here/login?next=/tasks"
        form = await browser.get("/here/login?next=/tasks")
        fields = {"csrf": csrf_of(form), "token": "minted", "next": "/tasks"}
        answer = await browser.post("/here/login", **fields)
        assert answer.headers["location"] == "/here/tasks"
        assert "Path=/here/" in answer.headers["set-cookie"].split("; ")
        page = await browser.page("/here/tasks")
        links = re.findall(r'(?:href|src|action|data-live)="([^"]*)"', page)
        assert links
        assert all(link.startswith(("/here/", "#")) for link in links)
        (style,) = [link for link in links if link.endswith("/page.css")]
        assert (await browser.get(style)).status == 200


def test_who_asks_for_the_head_of_a_link_does_not_use_it_up() -> None:
    headers = [(b"sec-fetch-site", b"none"), (b"sec-fetch-mode", b"navigate")]
    assert is_opened_by_hand({"method": "GET", "headers": headers})
    assert not is_opened_by_hand({"method": "HEAD", "headers": headers})


def test_links_and_logins_are_bounded_and_end() -> None:
    now = 0.0
    found = Logins(lambda: now)
    holder, other = Holder("token", TOKENS.proof("minted")), Holder("ada", TOKENS.proof("s3cret"))
    kept = found.begin(other), found.make_link(other)
    links = [found.make_link(holder) for _ in range(logins.MAX_LINKS + 1)]
    assert found.open_link(links[0]) is None
    assert found.open_link(links[1]) == holder
    cookies = [found.begin(holder) for _ in range(logins.MAX_LOGINS)]
    assert found.find(cookies[0], TOKENS) is not None
    cookies.append(found.begin(holder))
    assert found.find(cookies[1], TOKENS) is None
    assert found.find(cookies[0], TOKENS) is not None
    assert found.open_link(kept[1]) == other
    now = logins.LINK_LASTS
    assert found.open_link(links[2]) is None
    assert found.find(kept[0], TOKENS) is not None
    now += logins.IDLE
    assert found.find(kept[0], TOKENS) is None
    used, began = found.begin(holder), now
    while now - began < logins.LASTS:
        assert found.find(used, TOKENS) is not None
        now += logins.IDLE / 2
    assert found.find(used, TOKENS) is None
