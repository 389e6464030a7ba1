"""What a client of the protocol is told in the place of a result: its codes, with ours beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from ....errors import LimitReached, NotFound, ToolError
from ....tools.common.asking import RESOURCE_NOT_FOUND


def as_it_came(details: Mapping[str, Any]) -> MCPError | None:
    """The error that a server of the client's own era answered, if it did."""
    code, message = details.get("code"), details.get("message")
    if type(code) is not int or not isinstance(message, str):
        return None
    return MCPError(code=code, message=message, data=details.get("data"))


def as_answer(error: ToolError, method: str, *, is_modern: bool) -> MCPError:
    """What a server answered, as it did, but for what the eras call differently; else why it has
    not answered."""
    details: Mapping[str, Any] = error.details or {}
    missing = RESOURCE_NOT_FOUND if method == "resources/read" and not is_modern else INVALID_PARAMS
    if (came := as_it_came(details)) is not None:
        code = missing if isinstance(error, NotFound) else came.error.code
        return MCPError(code=code, message=came.error.message, data=came.error.data)
    code = missing if isinstance(error, NotFound) else INTERNAL_ERROR
    if isinstance(error, LimitReached):
        code = INVALID_REQUEST
    data = {**details, "code": error.code}
    return MCPError(code=code, message=error.message, data=data)
