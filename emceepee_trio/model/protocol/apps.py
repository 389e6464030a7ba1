"""MCP Apps, an extension: tools that servers show to people. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UI = "io.modelcontextprotocol/ui"
"""The extension whose clients show what tools have for people, and call tools for those."""


def is_for_model(tool: Mapping[str, Any]) -> bool:
    """Whether anybody may call it, and not only what its server shows to people."""
    if (meta := tool.get("_meta")) is None:
        return True  # as of almost all
    ui = meta.get("ui") if isinstance(meta, Mapping) else None
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    return not isinstance(visibility, list) or "model" in visibility or not visibility
