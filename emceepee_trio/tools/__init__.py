"""The tools that clients see: the same ones in the same order for everyone.

Each module ends in a tuple of its tools; `TOOLBOX` is all of them, with the `instructions` that a
client reads before it sees any. What tools are made of is in `common`.
"""

from __future__ import annotations

from . import (
    activity,
    execution,
    finding,
    inbox,
    prompts,
    questions,
    resources,
    servers,
    tasks,
    timers,
)
from .common.registry import Toolbox
from .instructions import instructions

TOOLBOX = Toolbox(
    (
        *servers.TOOLS,
        *finding.TOOLS,
        *execution.TOOLS,
        *resources.TOOLS,
        *prompts.TOOLS,
        *inbox.TOOLS,
        *questions.TOOLS,
        *tasks.TOOLS,
        *activity.TOOLS,
        *timers.TOOLS,
    ),
    instructions,
)
