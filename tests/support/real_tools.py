"""Names of 527 real tools of 70 servers, from LiveMCPTool by way of mcpproxy-go (MIT)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

REAL: Mapping[str, list[str]] = {
    re.sub(r"[^A-Za-z0-9._-]+", "-", server): names
    for server, names in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).items()
}
"""By server, each called as one can be in a configuration."""


def servers(number: int) -> dict[str, list[str]]:
    """All of the tools, of so many servers: what is left over goes to the others in turn."""
    names = list(REAL)
    found: dict[str, list[str]] = {name: [] for name in names[:number]}
    for at, name in enumerate(names):
        to = found[names[at % number]]
        # No server has two tools of one name.
        to += [f"{each}.{name}" if each in to else each for each in REAL[name]]
    return found
