"""What a client of the SDK says and hears, with our fixture and with our view of it: the same."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
import trio
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference

from http_server import QUIET
from official_suite import fixture_server
from served import serve
from taping import Json, taped

GUARD = 60.0
ERAS = {"handshake": "legacy", "modern": "2026-07-28"}
TOOLS: dict[str, Json] = {
    "test_simple_text": {},
    "test_image_content": {},
    "test_multiple_content_types": {},
    "test_error_handling": {},
    "test_tool_with_logging": {},
    "test_x_mcp_header": {"region": "söder"},
    "no_such_tool": {},
}
RESOURCES = ("test://static-text", "test://static-binary", "test://template/7/data", "test://none")
PROMPTS: dict[str, dict[str, str]] = {
    "test_simple_prompt": {},
    "test_prompt_with_arguments": {"arg1": "a", "arg2": "b"},
    "no_such_prompt": {},
}


@pytest.fixture(scope="module")
def fixture() -> Iterator[str]:
    with fixture_server() as url:
        yield url


@pytest.fixture(scope="module")
def ours(fixture: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    base = fixture.removesuffix("/mcp")
    servers = {era: {"url": f"{base}/{era}/mcp"} for era in ERAS}
    config.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    with serve(folder, "--no-auth", "--config", str(config)) as daemon:
        yield f"{daemon.url.removesuffix('/mcp')}/servers"


async def tolerated(request: Awaitable[Any]) -> None:
    try:
        await request
    except MCPError:
        pass  # it is on the tape


async def use(client: Client, era: str) -> None:
    """One of each, one after the other."""

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        """It is on the tape."""

    await client.list_tools()
    await client.list_resources()
    await client.list_resource_templates()
    await client.list_prompts()
    for tool, arguments in TOOLS.items():
        await tolerated(client.call_tool(tool, arguments))
    await client.call_tool("test_tool_with_progress", {}, progress_callback=heard)
    for uri in RESOURCES:
        await tolerated(client.read_resource(uri))
    for prompt, given in PROMPTS.items():
        await tolerated(client.get_prompt(prompt, given))
    ref = PromptReference(type="ref/prompt", name="test_simple_prompt")
    await client.complete(ref, {"name": "city", "value": "par"})
    if era == "handshake":
        await client.send_ping()
        await client.set_logging_level("warning")
        await client.subscribe_resource("test://watched-resource")
        await client.unsubscribe_resource("test://watched-resource")


async def tape_of(url: str, era: str) -> list[tuple[str, Json]]:
    with trio.fail_after(GUARD):
        async with taped(url, ERAS[era]) as (client, tape):
            await use(client, era)
        return tape.lines


@QUIET
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ERAS)
async def test_message_by_message_it_is_the_same(fixture: str, ours: str, era: str) -> None:
    direct = await tape_of(f"{fixture.removesuffix('/mcp')}/{era}/mcp", era)
    assert len(direct) > 40
    assert await tape_of(f"{ours}/{era}/mcp", era) == direct
