"""The static tools, the same list in the same order for everyone.

Importing a module of this package registers its tools; the order here is the order of the list.
"""

from __future__ import annotations

# isort: off
from . import servers as servers
from . import finding as finding
from . import execution as execution
from . import resources as resources
from . import prompts as prompts
from . import inbox as inbox
from . import questions as questions
from . import tasks as tasks
from . import activity as activity
from . import timers as timers

# isort: on
from .common.registry import TOOLS, Tool


def all_tools() -> tuple[Tool, ...]:
    return TOOLS.all()
