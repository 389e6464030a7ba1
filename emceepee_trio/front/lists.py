"""Our resources and no prompts, as MCP lists and reads them, with results that a session keeps.

Also the envelope of what we answer modern clients. Our tools are listed by `faces/ours.py`, and
lists of backends are looked into by tools.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ..errors import ExecutionFailed, NotFound
from ..tools.common.asking import RESOURCE_NOT_FOUND
from ..tools.resources import OUR_RESOURCES, read_ours
from ..tools.results.preview import RESULT
from ..tools.results.reading import contents_of

Context = ServerRequestContext[Any, Any]

TTL_MS = 300_000
"""How long a modern client may keep our lists, which never change while we run."""

SERVER_INFO = {"name": "emceepee", "version": version("emceepee-trio")}


def enveloped(version: str, result: dict[str, Any]) -> dict[str, Any]:
    """With what a modern client finds in every result."""
    if version not in MODERN_PROTOCOL_VERSIONS:
        return result
    theirs = result.get("_meta")
    meta = {SERVER_INFO_META_KEY: SERVER_INFO, **(theirs if isinstance(theirs, Mapping) else {})}
    return {**result, "resultType": "complete", "_meta": meta}


async def list_resources(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(context.protocol_version, {"resources": OUR_RESOURCES})


async def list_templates(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(context.protocol_version, {"resourceTemplates": []})


async def read_resource(context: Context, params: ReadResourceRequestParams) -> Any:
    uri = str(params.uri)
    try:
        if uri.startswith(RESULT):
            return enveloped(
                context.protocol_version, await contents_of(context.lifespan_context.session, uri)
            )
        return enveloped(context.protocol_version, read_ours(uri))
    except ExecutionFailed as error:
        raise MCPError(code=INTERNAL_ERROR, message=error.message, data={"uri": uri}) from None
    except NotFound as error:
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = INVALID_PARAMS if modern else RESOURCE_NOT_FOUND
        raise MCPError(code=code, message=error.message, data={"uri": uri}) from None


async def list_prompts(context: Context, params: PaginatedRequestParams | None) -> Any:
    return enveloped(context.protocol_version, {"prompts": []})


async def get_prompt(context: Context, params: GetPromptRequestParams) -> Any:
    raise MCPError(
        code=INVALID_PARAMS,
        message=f"no prompt {params.name!r}; the tool get_prompt gets those of servers",
    )
