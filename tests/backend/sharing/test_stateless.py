"""Which servers are known to keep nothing, however they are started."""

from __future__ import annotations

import pytest

from emceepee_trio.backend.sharing.stateless import keeps_nothing
from emceepee_trio.config import Server

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    "words",
    [
        ("uvx", "mcp-server-fetch"),
        ("uvx", "--from", "mcp-server-time==2025.8.4", "mcp-server-time"),
        ("uvx", "mcp-server-fetch@latest"),
        ("/home/somebody/.local/bin/mcp-server-time", "--local-timezone", "UTC"),
        ("npx", "-y", "@upstash/context7-mcp"),
        ("npx", "-y", "@upstash/context7-mcp@1.0.14"),
        ("npx", "-y", "tavily-mcp@latest"),
        ("uvx", "awslabs.aws-documentation-mcp-server[extra]>=1"),
    ],
)
def test_a_package_is_known_by_its_name(words: tuple[str, ...]) -> None:
    assert keeps_nothing(Server("x", command=words[0], args=words[1:]))


@pytest.mark.parametrize(
    "words",
    [
        ("npx", "@playwright/mcp@latest"),
        ("uvx", "mcp-server-git", "--repository", "/fetch"),
        ("uvx", "mcp-server-fetcher"),
        ("npx", "-y", "@somebody/tavily-mcp"),
        ("npx", "-y", "@somebody-else/context7-mcp"),
        ("bash", "-c", "run mcp-server-fetch"),
        ("fetch",),
        ("",),
        ("@",),
    ],
)
def test_what_only_looks_like_one_is_not(words: tuple[str, ...]) -> None:
    assert not keeps_nothing(Server("x", command=words[0], args=words[1:]))


def test_what_is_behind_a_url_is_nobodys_business() -> None:
    assert not keeps_nothing(Server("x", url="http://mcp-server-fetch/mcp"))
