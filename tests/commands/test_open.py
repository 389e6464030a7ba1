"""``emceepee open`` with a real daemon, and a browser that only writes down what it is to show."""

from __future__ import annotations

from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, OpenerDirector, build_opener

import pytest

from emceepee_lines import run
from served import serve

pytestmark = pytest.mark.once
TOKEN = "token-of-the-page"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve(tmp_path_factory.mktemp("served"), EMCEEPEE_TOKEN=TOKEN) as daemon:
        yield daemon.url.removesuffix("/mcp")


def browser() -> OpenerDirector:
    opener = build_opener(HTTPCookieProcessor(CookieJar()))
    # As browsers do that are told by a program, or by hand, where to go.
    by_hand = [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Mode", "navigate")]
    opener.addheaders = [("Accept", "text/html"), *by_hand]
    return opener


def test_a_link_is_printed_that_works_once(url: str) -> None:
    told = run("open", "--print", "--url", f"{url}/mcp", EMCEEPEE_TOKEN=TOKEN)
    assert (told.returncode, told.stderr) == (0, "")
    link = told.stdout.strip()
    assert link.startswith(f"{url}/login?key=")
    assert TOKEN not in link
    first = browser()
    with first.open(link) as page:
        assert "You are logged in" in page.read().decode()
    with first.open(url) as page:
        assert "<h1>Now</h1>" in page.read().decode()
    with pytest.raises(HTTPError, match="403"):
        browser().open(link)


def test_a_browser_is_opened(url: str, tmp_path: Path) -> None:
    script, shown = tmp_path / "browser", tmp_path / "shown"
    script.write_text(f'#!/bin/sh\nprintf %s "$1" > {shown}\n')
    script.chmod(0o700)
    told = run("open", "--url", url, EMCEEPEE_TOKEN=TOKEN, BROWSER=str(script))
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    assert shown.read_text().startswith(f"{url}/login?key=")


def test_where_there_is_no_browser_the_link_is_printed(url: str) -> None:
    told = run("open", "--url", url, EMCEEPEE_TOKEN=TOKEN, BROWSER="false", PATH="/nowhere")
    assert told.returncode == 0
    assert f"{url}/login?key=" in told.stdout


def test_what_cannot_be_opened_says_what_to_do(url: str) -> None:
    told = run("open", "--url", url, EMCEEPEE_TOKEN="wrong")
    assert told.returncode == 1
    assert "set EMCEEPEE_TOKEN" in told.stderr
    told = run("open", "--url", "unix:/nowhere")
    assert told.returncode == 2
    assert "listen on a port" in told.stderr
