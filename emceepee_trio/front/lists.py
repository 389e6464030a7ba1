"""Our tools, our resource and no prompts, as MCP lists and reads them: the same for everyone.

Lists of backends are not here; tools look into those.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    SERVER_INFO_META_KEY,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)
from mcp_types.methods import serialize_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..errors import ExecutionFailed, NotFound
from ..model.wire import dumps
from ..tools.common.asking import RESOURCE_NOT_FOUND
from ..tools.common.registry import Toolbox
from ..tools.resources import OUR_RESOURCES, read_ours
from ..tools.results.preview import RESULT
from ..tools.results.reading import contents_of

Context = ServerRequestContext[Any, Any]

SERVER_INFO = {"name": "emceepee", "version": version("emceepee-trio")}


def enveloped(context: Context, result: dict[str, Any]) -> dict[str, Any]:
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return in_envelope(result) if is_modern else result


def in_envelope(result: dict[str, Any]) -> dict[str, Any]:
    """What a modern client finds in every result."""
    theirs = result.get("_meta")
    meta = {SERVER_INFO_META_KEY: SERVER_INFO, **(theirs if isinstance(theirs, Mapping) else {})}
    return {**result, "resultType": "complete", "_meta": meta}


@cache
def tools_listed(toolbox: Toolbox, version: str) -> str:
    """The result of tools/list as it goes out, of a version of the handshake era."""
    tools = {"tools": [tool.to_json() for tool in toolbox.tools]}
    return dumps(serialize_server_result("tools/list", version, tools))


async def list_tools(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(
        context, {"tools": [tool.to_json() for tool in context.lifespan_context.toolbox.tools]}
    )


async def list_resources(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(context, {"resources": OUR_RESOURCES})


async def list_templates(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(context, {"resourceTemplates": []})


async def read_resource(context: Context, params: ReadResourceRequestParams) -> Any:
    uri = str(params.uri)
    try:
        if uri.startswith(RESULT):
            return enveloped(context, await contents_of(context.lifespan_context.session, uri))
        return enveloped(context, read_ours(uri))
    except ExecutionFailed as error:
        raise MCPError(code=INTERNAL_ERROR, message=error.message, data={"uri": uri}) from None
    except NotFound as error:
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
        raise MCPError(code=code, message=error.message, data={"uri": uri}) from None


async def list_prompts(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(context, {"prompts": []})


async def get_prompt(context: Context, params: GetPromptRequestParams) -> Any:
    raise MCPError(
        code=INVALID_PARAMS,
        message=f"no prompt {params.name!r}; the tool get_prompt gets those of servers",
    )
