"""The views: which of our tools a client is shown, and what it is told about them.

A view is for its length alone: what it leaves out is answered all the same, if anybody asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from . import code, execution, finding, prompts, questions, resources, search, servers, tasks
from .common.registry import LOADED, Tool, Toolbox
from .instructions import CODE, CORE, NATIVE, TOOLS, instructions
from .news import activity, inbox, timers
from .results import reading

ALL = (
    *servers.TOOLS,
    *finding.TOOLS,
    *search.TOOLS,
    *execution.TOOLS,
    *reading.TOOLS,
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


def _view(how: str, *tools: Tool) -> Toolbox:
    """Some of them, all of which are there from the start."""
    loaded = tuple(attrs.evolve(each, meta={**LOADED, **each.meta}) for each in tools)
    return Toolbox(loaded, partial(instructions, how), unlisted=ALL)


_WAITING = (
    activity.await_activity,
    tasks.get_task_result,
    questions.respond_to_elicitation,
    questions.respond_to_sampling,
)

VIEWS: Mapping[str, Toolbox] = {
    "tools": TOOLBOX,
    "core": _view(
        CORE,
        servers.list_servers,
        attrs.evolve(search.codemode_search, name="search"),
        attrs.evolve(
            execution.execute_tool,
            description=execution.execute_tool.description.replace("list_tools", "search"),
        ),
        *_WAITING,
        reading.read_result,
    ),
    "code": _view(CODE, search.codemode_search, code.codemode_execute, *_WAITING),
}

BESIDE = _view(
    NATIVE,
    finding.list_tools,
    execution.execute_tool,
    servers.list_servers,
    servers.add_server,
    servers.remove_server,
    servers.reconnect_server,
    servers.get_server_status,
    activity.await_activity,
    tasks.list_tasks,
    tasks.get_task_result,
    tasks.cancel_task,
    questions.respond_to_elicitation,
    questions.respond_to_sampling,
    reading.read_result,
)
"""What stands beside the tools of servers, where those have names of their own."""
