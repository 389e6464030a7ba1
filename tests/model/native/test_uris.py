from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.config.server import NAME
from emceepee_trio.model.native.uris import meant, native_uri

servers = st.lists(st.from_regex(NAME, fullmatch=True), min_size=1, max_size=5, unique=True)
uris = st.one_of(
    st.sampled_from(
        ["file:///x", "ui://app/view.html", "UI://x", "a+b:c", "git+ui://x", "ui:x", ""]
    ),
    st.from_regex(r"[a-z][a-z0-9+.-]{0,8}:(//)?[ -~]{0,20}", fullmatch=True),
    st.text(max_size=20),
)


@pytest.mark.parametrize(
    ("server", "uri", "native"),
    [
        ("git", "file:///x", "git+file:///x"),
        ("git", "ui://app/view.html", "ui://git/app/view.html"),
        ("git", "ui://view", "ui://git/view"),
        ("git", "ui://{name}/{+rest}", "ui://git/{name}/{+rest}"),
        ("git", "file:///{path}", "git+file:///{path}"),
        ("git", "{+anything}", "git+{+anything}"),
        ("git", "emceepee://diagrams", "git+emceepee://diagrams"),
        ("Git.hub-2", "note:1", "Git.hub-2+note:1"),
        ("my_git", "ui://view", "ui://my_git/view"),
    ],
)
def test_a_uri_says_whose_it_is(server: str, uri: str, native: str) -> None:
    assert native_uri(server, uri) == native
    assert meant(native, ["other", server, "ui", "file"]) == (server, uri)


@pytest.mark.parametrize("server", ["my_git", "12306", "a__b", "9_"])
def test_what_begins_as_no_uri_can_is_altered(server: str) -> None:
    native = native_uri(server, "file:///x")
    assert re.match(r"[A-Za-z][A-Za-z0-9.-]*-[0-9a-f]{6}\+file:///x", native)
    assert meant(native, [server]) == (server, "file:///x")
    assert meant(f"{server}+file:///x", [server]) == (server, "file:///x")


@given(servers, uris, st.data())
def test_there_and_back(names: list[str], uri: str, data: st.DataObject) -> None:
    server = data.draw(st.sampled_from(names))
    assert meant(native_uri(server, uri), names) == (server, uri)


def test_small_letters_will_do_and_exactly_is_better() -> None:
    assert meant("git+file:///X", ["Git", "GIT"]) == ("Git", "file:///X")
    assert meant("git+file:///X", ["Git", "git"]) == ("git", "file:///X")
    assert meant("ui://git/X", ["GIT"]) == ("GIT", "ui://X")


@pytest.mark.parametrize(
    "native",
    ["", "file:///x", "emceepee://diagrams", "other+file:///x", "ui://git", "ui://b/c", "+x"],
)
def test_what_is_of_nobody(native: str) -> None:
    assert meant(native, ["git"]) is None
