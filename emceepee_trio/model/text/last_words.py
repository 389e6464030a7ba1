"""Which lines of what a program wrote last say why it ended. Pure.

It is seldom the last one: installers end with where their log is, interpreters with the frames of a
stack, others with a hint. What a line is worth is told by its form alone; a few that stand beside
it are shown as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

_PREFIX = re.compile(r"npm (?:error|ERR!) ?|\[\d+\] |\x1b\[[0-9;]*m")
"""What installers put before each of their lines."""
_NOISE = re.compile(
    r"""
    [\s\W\d_]*                               # nothing but signs
    | \s*at\s.*                              # a frame: node
    | \s*File\s".*",\sline\s\d+.*            # python
    | Traceback\s.* | During\shandling\s.* | The\sabove\sexception\s.*
    | throw\s\w+; | node:[\w/]+:\d+ | \[eval\]:\d+ | Node\.js\sv.* | Require\sstack:.* | \s*-\s/.*
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

_NETWORK = re.compile(
    r"certificate|self.signed|UnknownIssuer|unable to get (?:local )?issuer|x509|\bTLS\b|\bSSL|"
    r"prox(?:y|ies)\b|registr(?:y|ies)\b|pypi|npmjs|failed to fetch|fetch failed|FetchError|"
    r"getaddrinfo|could not resolve|failed to lookup|dns error|name or service not known|"
    r"temporary failure in name resolution|network is unreachable|tcp connect error|"
    r"\b(?:ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH)\b|"
    r"\bE40[1347]\b|pull access denied|No matching (?:version|distribution) found|"
    r"no solution found when resolving",
    re.IGNORECASE,
)
"""What is said when a registry cannot be reached, or another one was meant."""

CONSIDERED = 1000
"""Characters of a line."""
BESIDE = 2
"""Lines that are shown before the one that says why, and after it."""


@attrs.frozen
class LastWords:
    """What a program wrote last, as somebody wants to read it."""

    reason: str
    """The line that says why, with its deepest cause if it names one."""
    around: tuple[str, ...]
    """The lines beside it that say something, in their order."""


def last_words(lines: Sequence[str]) -> LastWords | None:
    """None if there is no line."""
    said = [_PREFIX.sub("", line[:CONSIDERED]).strip() for line in lines]
    said = [line for line in said if line]
    if not said:
        return None
    causes = {at: found["why"] for at, line in enumerate(said) if (found := _CAUSE.fullmatch(line))}
    others = [at for at in range(len(said)) if at not in causes]
    # Of exceptions that were raised one after the other, python writes the last one last.
    is_python = any(line.startswith("Traceback ") for line in said)
    why = [causes[max(causes)]] if causes else []
    best = max(causes, default=-1)
    if others:
        best = max(reversed(others) if is_python else others, key=lambda at: _worth(said[at]))
        if _worth(said[best]) == 0:
            best = others[-1]
        why.insert(0, said[best].rstrip(".") if causes else said[best])
    telling = [at for at, line in enumerate(said) if _worth(line) > 0 and at != best]
    if causes and max(causes) in telling:
        telling.remove(max(causes))
    before, after = [at for at in telling if at < best], [at for at in telling if at > best]
    around = (said[at] for at in (*before[-BESIDE:], *after[:BESIDE]))
    return LastWords(": ".join(why), tuple(dict.fromkeys(around)))


def is_of_network(lines: Iterable[str]) -> bool:
    """Whether they smell of certificates, a proxy or a registry."""
    return any(_NETWORK.search(line[:CONSIDERED]) for line in lines)


def _worth(line: str) -> int:
    if _NOISE.fullmatch(line):
        return 0
    if _NAMED.match(line):
        return 3
    return 2 if _SPOKEN.search(line) else 1
