"""What a client of the SDK says and hears, with our fixture and with our view of it: the same."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator
from typing import Any

import attrs
import pytest
import trio
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    PromptReference,
    TextContent,
)

from emceepee_trio.model.native.names import native_name
from emceepee_trio.model.native.uris import native_uri
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
ASKING: dict[str, Json] = {
    "test_elicitation": {"message": "Who?"},
    "test_sampling": {"prompt": "What?"},
    "test_input_required_result_elicitation": {},
    "test_input_required_result_multi_round": {},
}
"""Natively what is asked is told beside the results, too."""
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
    config.write_text(json.dumps({"mcpServers": servers, "context": "off"}), "utf-8")
    with serve(folder, "--no-auth", "--config", str(config)) as daemon:
        yield f"{daemon.url.removesuffix('/mcp')}/servers"


@attrs.frozen
class Named:
    """What names of a server are, in the view of all of them."""

    server: str | None = None
    is_native: bool = False
    """Or compared with what is."""

    def name(self, name: str) -> str:
        return name if self.server is None else native_name(self.server, name, 45)

    def uri(self, uri: str) -> str:
        return uri if self.server is None else native_uri(self.server, uri)

    def undone(self, tape: list[tuple[str, Json]], listed: list[Json]) -> list[Json]:
        """What was answered, but for the first, in the server's own names.

        *listed* are its tools. Whose envelope an answer has does not matter here.
        """
        answers = [each for way, each in tape if way == "<-" and "method" not in each][1:]
        found = [each.get("result") or each.get("error") or {} for each in answers]
        return [self._undone(each, listed) for each in found]

    def _undone(self, answer: Json, listed: list[Json]) -> Json:
        said = {key: value for key, value in answer.items() if key not in ENVELOPE}
        if self.server is None:
            return said
        for key, name in LISTS.items():
            if key in said:
                # There are other servers, and tools of ours.
                its = (f"{self.server}__", f"{self.server}+")
                said[key] = [each for each in said[key] if each[name].startswith(its)]
        text = json.dumps(said).replace(f"{self.server}+test:", "test:")
        for tool in listed:
            text = text.replace(json.dumps(self.name(tool["name"])), json.dumps(tool["name"]))
        found: Json = json.loads(text.replace(f'"{self.server}__', '"'))
        return found


ENVELOPE = {"_meta", "ttlMs", "cacheScope"}
LISTS = {
    "tools": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
    "prompts": "name",
}


async def filled_in(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada", "color": "blue"})


async def sampled(
    context: ClientRequestContext, params: CreateMessageRequestParams
) -> CreateMessageResult:
    said = TextContent(type="text", text="that")
    return CreateMessageResult(role="assistant", content=said, model="m")


async def tolerated(request: Awaitable[Any]) -> None:
    try:
        await request
    except MCPError:
        pass  # it is on the tape


async def use(client: Client, era: str, named: Named = Named()) -> None:
    """One of each, one after the other, as they are named there."""

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        """It is on the tape."""

    await client.list_tools()
    await client.list_resources()
    await client.list_resource_templates()
    await client.list_prompts()
    for tool, arguments in (TOOLS if named.is_native else TOOLS | ASKING).items():
        if tool == "no_such_tool" and named.is_native:
            continue  # a call is one of execute_tool, whose errors are results
        await tolerated(client.call_tool(named.name(tool), arguments))
    progressing = named.name("test_tool_with_progress")
    await client.call_tool(progressing, {}, progress_callback=heard)
    for uri in RESOURCES:
        await tolerated(client.read_resource(named.uri(uri)))
    for prompt, given in PROMPTS.items():
        await tolerated(client.get_prompt(named.name(prompt), given))
    ref = PromptReference(type="ref/prompt", name=named.name("test_simple_prompt"))
    await client.complete(ref, {"name": "city", "value": "par"})
    if era == "handshake":
        await client.send_ping()
        await client.set_logging_level("warning")
        await client.subscribe_resource(named.uri("test://watched-resource"))
        await client.unsubscribe_resource(named.uri("test://watched-resource"))


async def tape_of(url: str, era: str, named: Named = Named()) -> list[tuple[str, Json]]:
    with trio.fail_after(GUARD):
        callbacks = {"elicitation_callback": filled_in, "sampling_callback": sampled}
        async with taped(url, ERAS[era], **callbacks) as (client, tape):
            await use(client, era, named)
        return tape.lines


@QUIET
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ERAS)
async def test_message_by_message_it_is_the_same(fixture: str, ours: str, era: str) -> None:
    direct = await tape_of(f"{fixture.removesuffix('/mcp')}/{era}/mcp", era)
    assert len(direct) > 40
    assert await tape_of(f"{ours}/{era}/mcp", era) == direct


@QUIET
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ERAS)
async def test_natively_it_is_the_same_but_for_names(fixture: str, ours: str, era: str) -> None:
    of_server, named = Named(None, is_native=True), Named(era, is_native=True)
    direct = await tape_of(f"{fixture.removesuffix('/mcp')}/{era}/mcp", era, of_server)
    natively = f"{ours.removesuffix('/servers')}/mcp?view=native&session={era}"
    tape = await tape_of(natively, era, named)
    results = [each["result"] for _, each in direct if "result" in each]
    listed = next(each["tools"] for each in results if "tools" in each)
    assert named.undone(tape, listed) == of_server.undone(direct, listed)
