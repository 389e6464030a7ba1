"""How many files this process may open, and which share of them is for children: raises it, too.

The other half is for connections of clients (``serving/listen.py``): however many programs are
wanted, somebody can still connect. Knows of children only how to give them back what we had.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from ...config.bounds import MAX_CHILDREN

EACH = 4
"""Files of a child: its three pipes, and what tells of its end."""
OURS = 48
"""For what is neither a child nor a connection: sockets that listen, the log, what is read."""

_inherited = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
"""The soft limit as we were started with it, which is the one of the programs that we start."""


def raise_limit() -> None:
    """The soft limit is only there for programs that use select(), and we do not."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a kernel may have another opinion of "unlimited"
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def restore_limit(pid: int) -> None:
    """Give a child the soft limit that it would have had. It may have looked before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != _inherited and hasattr(resource, "prlimit"):
        with suppress(OSError):  # it has ended, or runs as somebody else
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (_inherited, hard))


def most_children() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MAX_CHILDREN, max(1, (soft // 2 - OURS) // EACH)) if soft > 0 else MAX_CHILDREN
