"""What client programs do with an answer: the one place that knows any by name.

Each row says what it was seen with, and when. Who is not here is taken to give up after a minute,
as most do, and to show its model the content of an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ...config import Limits
from ...config.bounds import MAX_EXECUTE_TIMEOUT_MS


@attrs.frozen
class KnownClient:
    """A client program, by the name in its clientInfo."""

    name: str
    seen: str
    patience_ms: int = 0
    """It was seen to wait for an answer at least so long."""
    only_structured: bool = False
    """Of an answer with structuredContent, its model is shown nothing else."""
    errors_by_content: bool = False
    """But of an error, its content."""
    wants_whole: bool = False
    """It has no model that would read an answer: none is too long for it."""

    def answer_ms(self, limits: Limits) -> int:
        """How long its requests may be held."""
        return max(limits.answer_ms, self.patience_ms)

    def shows_only_structured(self, result: Mapping[str, Any]) -> bool:
        """Of such an answer."""
        is_error = bool(result.get("isError"))
        return (
            self.only_structured
            and "structuredContent" in result
            and not (is_error and self.errors_by_content)
        )


CLIENTS = (
    # It gives up after 27 hours, but after 5 minutes of silence over HTTP, after 30 on pipes.
    KnownClient(
        "claude-code",
        "claude-code 2.1.327, November 2026",
        patience_ms=240_000,
        only_structured=True,
        errors_by_content=True,
    ),
    # It was answered after 120 s.
    KnownClient(
        "codex-mcp-client",
        "codex 0.169.0, November 2026",
        patience_ms=100_000,
        only_structured=True,
    ),
    KnownClient("emceepee call", "our own", patience_ms=MAX_EXECUTE_TIMEOUT_MS, wants_whole=True),
)

STRANGER = KnownClient("", "never")

_BY_NAME = {client.name: client for client in CLIENTS}


def known(name: str) -> KnownClient:
    return _BY_NAME.get(name, STRANGER)
