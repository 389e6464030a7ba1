"""How URLs, command lines and ids are shown to people, models and logs: without secrets.

Hidden are the user and the query values of URLs, and what follows a word that sounds like a secret:
``--api-key X``, ``--token=X``, ``API_KEY=X``, ``Authorization: X``. Rather too much
than too little.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit, urlunsplit

HIDDEN = "***"

SHOWN = 8
"""Characters of a session's id, enough to find it in the logs."""

LONGEST = 300
"""Characters of a target; the rest is cut."""

_WORDS = "key|token|secret|passw|pwd|credential|auth|header|bearer|cookie"
_OPTION = re.compile(rf"--?[\w.-]*(?:{_WORDS})[\w.-]*", re.IGNORECASE)
_SPOKEN = re.compile(
    rf"((?:{_WORDS})[\w.-]*\s*[:=]\s*|--?[\w.-]*(?:{_WORDS})[\w.-]*\s+|\bbearer\s+).+",
    re.IGNORECASE | re.DOTALL,
)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)


def redact_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # Invalid where a password was cut in two.
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    named = "&".join(f"{name}={HIDDEN}" if value else HIDDEN for name, value in query)
    return _cut(urlunsplit((parts.scheme, host, parts.path, named, "")))


def redact_command(words: Iterable[str]) -> str:
    shown, hide = [], False
    for word in words:
        shown.append(HIDDEN if hide else redact_text(word))
        hide = _OPTION.fullmatch(word) is not None or word == "-H"
    return _cut(" ".join(word if HIDDEN in word else shlex.quote(word) for word in shown))


def redact_text(text: str) -> str:
    """*text* with the URLs in it redacted, and everything after a word that sounds secret."""
    text = _URL.sub(lambda found: redact_url(found[0]), text)
    return _SPOKEN.sub(lambda found: found[1] + HIDDEN, text)


def label(session_id: str) -> str:
    """Ids of HTTP sessions in part: whoever knows a whole one needs only a token to join it."""
    is_name = "/" in session_id or len(session_id) <= SHOWN
    return session_id if is_name else f"{session_id[:SHOWN]}…"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
