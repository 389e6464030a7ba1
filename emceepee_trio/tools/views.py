"""The views: which of our tools a client is shown, and what it is told about them.

A view is for its length alone: what it leaves out is answered all the same, if anybody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from . import code, execution, finding, prompts, questions, resources, search, servers, tasks
from .common.registry import LOADED, Tool, Toolbox
from .instructions import CORE, TOOLS, instructions
from .news import activity, inbox, timers

ALL = (
    *servers.TOOLS,
    *finding.TOOLS,
    *search.TOOLS,
    *execution.TOOLS,
    *resources.TOOLS,
    *prompts.TOOLS,
    *inbox.TOOLS,
    *questions.TOOLS,
    *tasks.TOOLS,
    *activity.TOOLS,
    *timers.TOOLS,
    *code.TOOLS,
)

TOOLBOX = Toolbox(ALL, partial(instructions, TOOLS))


def _view(how: str, *names: str) -> Toolbox:
    """Some of them, all of which are there from the start."""
    shown = tuple(map(_loaded, map(TOOLBOX.get, names)))
    return Toolbox(shown, partial(instructions, how), unlisted=ALL)


def _loaded(tool: Tool) -> Tool:
    return attrs.evolve(tool, meta={**LOADED, **tool.meta})


VIEWS: Mapping[str, Toolbox] = {
    "tools": TOOLBOX,
    "core": _view(
        CORE,
        "list_servers",
        "list_tools",
        "execute_tool",
        "await_activity",
        "get_task_result",
        "respond_to_elicitation",
        "respond_to_sampling",
    ),
}
