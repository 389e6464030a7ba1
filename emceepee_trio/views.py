"""Which views there are: what a client may be shown, by name, with a line on each.

What is in one is in `tools/views.py`, or is a face of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

VIEWS: Mapping[str, str] = {
    "tools": "all tools",
    "core": "a few tools in place of all, for a client that lists all that it is given",
    "code": "tools for a model that writes scripts",
    "native": "the tools of servers under names of their own",
}

DEFAULT = next(iter(VIEWS))
"""That of a client that asks for none."""
ONE_SERVER = "server"
"""No view that can be asked for: who is shown one server as it is."""
