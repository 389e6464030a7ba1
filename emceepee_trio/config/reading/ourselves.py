"""Which entries of a file are about this program itself.

Every client that has been told of us has such an entry, and whoever hands us its file means the
others. To start it as a server would be to start ourselves without an end.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..server import OUR_NAME

_NAMES = re.compile(r"emceepee([-_]trio)?(\.exe)?")
_STARTED = re.compile(r"(?:^|[\s/\\'\"])emceepee(?:[-_]trio)?(?:\.exe)?(?:@\S+)?['\"]?\s+stdio\b")
"""As a word of any command line, be it that of uvx, pipx, a shell or a Python."""
_LOOPBACK = {"127.0.0.1", "::1", "localhost", "0.0.0.0"}
_ELSEWHERE = {"ssh", "docker", "podman", "kubectl"}
"""What these start is not us: it has other files, or another machine."""


def is_us(name: object, entry: Mapping[str, Any], ports: Collection[int]) -> bool:
    """Whether *entry* starts this program, or connects to it.

    Under our own name less is needed to know it by. On *ports* of this machine we listen.
    """
    url, command, args = entry.get("url"), entry.get("command"), entry.get("args")
    words = [command, *args] if isinstance(args, list) else [command]
    texts = [word for word in words if isinstance(word, str)]
    if any(_is_our_address(text, ports) for text in [url, *texts] if isinstance(text, str)):
        return True
    if name == OUR_NAME:
        is_address = isinstance(url, str) and re.match(r"https?://", url) is not None
        return is_address or any(OUR_NAME in text for text in texts)
    if not texts or texts[0] is not command:
        return False
    program = re.split(r"[/\\]", command)[-1]
    if _NAMES.fullmatch(program):
        return True
    return program not in _ELSEWHERE and _STARTED.search(" ".join(texts)) is not None


def _is_our_address(text: str, ports: Collection[int]) -> bool:
    """Of the endpoint of a daemon on this machine, as it says it: with the name of a session."""
    if not text.startswith(("http://", "https://")):
        return False
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    if host not in _LOOPBACK or parts.path.rstrip("/") != "/mcp":
        return False
    return (port or 80) in ports or "session" in parse_qs(parts.query)
