"""Which line of what a program wrote last says why it ended. Pure.

It is seldom the last one: installers end with where their log is, interpreters with the frames of a
stack, others with a hint. What a line is worth is told by its form alone; whoever wants to see
more is shown all of them beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PREFIX = re.compile(r"npm (?:error|ERR!) ?|\[\d+\] |\x1b\[[0-9;]*m")
"""What installers put before each of their lines."""
_NOISE = re.compile(
    r"""
    [\s\W_]*                                 # nothing but signs
    | \s*at\s.*                              # a frame: node
    | \s*File\s".*",\sline\s\d+.*            # python
    | Traceback\s.* | During\shandling\s.* | The\sabove\sexception\s.*
    | node:[\w/]+:\d+ | \[eval\]:\d+ | Node\.js\sv.* | Require\sstack:.* | \s*-\s/.*
    | \s*\w+:\s('.*'|\[.*\]|-?\d+),?         # a property of a thrown object
    | \s*(code|errno|syscall|path|dest)\s\S+ # the same, as npm writes it
    | (hint|note|usage|help)\b.* | Run\s'.*'\sfor\smore.* | .*\bhelp\sconfig\b.*
    | A\scomplete\slog\sof\sthis\srun.* | .*\bnpm\s(warn|WARN|notice)\b.* | warning\b.*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:[\w.]+: )?(?:[\w.]*(?:Error|Exception|Exit|Panic)|error|fatal|docker|panic)\b"
    r"(?: \[\w+\])?: .+"
    r"|thread '.*' panicked.*"
)
_SPOKEN = re.compile(
    r"\b(?:error|exception|fatal|failed|failure|cannot|can't|could not|unable|not found|no such|"
    r"no matching|denied|refused|invalid|missing|required|expired|unauthorized|already in use)\b",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"\s*(?:Caused by|cause|\[cause\]):\s*(?P<why>.+)", re.IGNORECASE)

CONSIDERED = 1000
"""Characters of a line."""


def reason(lines: Sequence[str]) -> str | None:
    """The line that says why, with its deepest cause if it names one; None if there is no line."""
    said = [_PREFIX.sub("", line[:CONSIDERED]).rstrip() for line in lines]
    causes = [found["why"] for line in said if (found := _CAUSE.fullmatch(line))]
    others = [line.strip() for line in said if line.strip() and not _CAUSE.fullmatch(line)]
    if not others:
        return causes[-1] if causes else None
    # Of exceptions that were raised one after the other, python writes the last one last.
    is_python = any(line.startswith("Traceback ") for line in others)
    best = max(reversed(others) if is_python else others, key=_worth)
    if _worth(best) == 0:
        best = others[-1]
    return f"{best.rstrip('.')}: {causes[-1]}" if causes else best


def _worth(line: str) -> int:
    if _NOISE.fullmatch(line):
        return 0
    if _NAMED.match(line):
        return 3
    return 2 if _SPOKEN.search(line) else 1
