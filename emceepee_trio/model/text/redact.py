"""How URLs, command lines and ids are shown to people, models and logs: without secrets.

Hidden are the user and the query values of URLs, and parts of their paths that nobody has thought
up; what follows a word that sounds like a secret: ``--api-key X``, ``--token=X``, ``API_KEY=X``,
``Authorization: X``; and what looks like a token of a well-known service wherever it stands, as
``ghp_…`` does. Rather too much than too little.

Whoever adds a server chooses its words, so everything here takes a time in proportion to them: no
pattern looks twice at the same character. No URL is cut before it is redacted, for half of one
does not show where its password is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, urlsplit, urlunsplit

HIDDEN = "***"

SHOWN = 8
"""Characters of a session's id, enough to find it in the logs."""

LONGEST = 300
"""Characters of a target; the rest is cut."""

_NAMES = re.compile(r"(?:[\w@%+=:,./-]|\$\{[\w:-]*+\})++", re.ASCII)
"""A word that needs no quotes, but for the names of variables in it."""

_WORD = re.compile("key|token|secret|passw|pwd|credential|auth|header|bearer|cookie", re.IGNORECASE)
_RUN = re.compile(r"([\w.-]++)(\s*+)(?:([:=])(\s*+))?+")
"""What may be the name of a value, and what stands between the two."""
_BEARER = re.compile(r"(?<!\w)bearer\Z", re.IGNORECASE)
_URL = re.compile(r"(?<![a-z0-9+.-])([0-9+.-]*+)([a-z][a-z0-9+.-]*+://[^\s\"'<>]+)", re.IGNORECASE)

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(gh[opsur]_|github_pat_|gl[a-z]{2,5}-|sk-|[rsp]k_(?:live|test)_|xox[a-z]-|xapp-"
    r"|AKIA|ASIA|AIza|ya29\.|eyJ|hf_|npm_|pypi-|ntn_|lin_api_|tvly-|dop_v1_|shpat_|SG\.|figd_|PMAK-)"
    r"[A-Za-z0-9_.=-]{6,}+"
)
"""What services begin their tokens with, so that they can be found: GitHub, GitLab, OpenAI and
Anthropic, Stripe, Slack, AWS, Google, JWTs, Hugging Face, npm, PyPI, Notion, Linear, Tavily, ..."""

_RANDOM = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?=[a-z]*+[0-9])(?=[0-9]*+[a-z])[0-9a-z]{16,}+"
    r"|(?-i:(?=[^0-9]*+[0-9])(?=[^a-z]*+[a-z])(?=[^A-Z]*+[A-Z])[\w.~=-]{20,}+)",
    re.ASCII | re.IGNORECASE,
)
"""A part of a path that lets in whoever knows it, as many services have it: a UUID, letters and
digits for long, or all kinds of signs for longer. Names and versions are not like that."""


def redact_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # Invalid where a password was cut in two.
        # Each is shown with a character at least, so no more can be seen.
        shown = "&".join(parts.query.split("&", LONGEST)[:LONGEST])
        query = parse_qsl(shown, keep_blank_values=True)
    except ValueError:
        return HIDDEN
    host = parts.netloc.rpartition("@")[2]
    named = "&".join(f"{name}={HIDDEN}" if value else HIDDEN for name, value in query)
    path = "/".join(HIDDEN if _RANDOM.fullmatch(each) else each for each in parts.path.split("/"))
    return _cut(urlunsplit((parts.scheme, host, _TOKEN.sub(rf"\1{HIDDEN}", path), named, "")))


def redact_command(words: Iterable[str]) -> str:
    return command_line(redact_words(words))


def command_line(words: Iterable[str]) -> str:
    """Of words as they are shown; what stands for something else is not quoted."""
    shown, length = [], 0
    for word in words:
        shown.append(word)
        length += len(word) + 1
        if length > LONGEST + 1:
            break  # the rest would be cut
    return _cut(
        " ".join(
            word if HIDDEN in word or _NAMES.fullmatch(word) else shlex.quote(word)
            for word in shown
        )
    )


def redact_words(words: Iterable[str]) -> Iterator[str]:
    """Those of a command line, each as it is shown."""
    hide = False
    for word in words:
        yield HIDDEN if hide else redact_text(word)
        hide = word == "-H" or _is_option(word)


def redact_text(text: str) -> str:
    """*text* with the URLs in it redacted, and everything after a word that sounds secret.

    Of a long text it is the beginning, more than what is shown.
    """
    shown, length, end = [], 0, 0
    for found in _URL.finditer(text):
        said = text[end : found.start()] + found[1] + redact_url(found[2])
        shown.append(said)
        length += len(said)
        end = found.end()
        if length > LONGEST:
            break
    else:
        shown.append(text[end:])
    # Whatever is hidden behind here could not be seen anyway.
    return _TOKEN.sub(rf"\1{HIDDEN}", _unspoken("".join(shown)[: 2 * LONGEST]))


def _unspoken(text: str) -> str:
    """*text* without what follows the first name that sounds secret.

    Between the two is a sign, as in ``key=X``, or white space after an option or "bearer".
    """
    last = len(text) - 1
    for run in _RUN.finditer(text):
        name = run[1]
        if (word := _WORD.search(name)) is None:
            continue
        # There is something left to be hidden.
        is_signed = run[3] is not None and run.end(3) <= last
        is_spaced = run[2] != "" and run.end(1) < last
        dash = name.find("-")
        is_option = dash >= 0 and _WORD.search(name, dash + 1) is not None
        if is_spaced and is_option and dash < word.start():
            is_signed = False  # but part of its value
        if is_signed:
            return text[: min(run.end(), last)] + HIDDEN
        if is_spaced and (is_option or _BEARER.search(name)):
            return text[: min(run.end(2), last)] + HIDDEN
    return text


def _is_option(word: str) -> bool:
    run = _RUN.match(word)
    if run is None or run[1] != word or word[0] != "-":
        return False
    return _WORD.search(word, 1) is not None


def label(session_id: str) -> str:
    """Ids of HTTP sessions in part: whoever knows a whole one needs only a token to join it."""
    is_name = "/" in session_id or len(session_id) <= SHOWN
    return session_id if is_name else f"{session_id[:SHOWN]}…"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
