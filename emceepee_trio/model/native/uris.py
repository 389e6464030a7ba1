"""The URI of a server's resource among those of other servers, there and back. Pure.

``git+file:///x`` is ``file:///x`` of ``git``. What is shown to people stays ``ui:``, which is all
that clients render: ``ui://git/rest`` is ``ui://rest`` of ``git``. Templates are URIs, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .names import digest

_UI = re.compile("ui://", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")
"""What a URI may begin with, but for the plus sign, which no server has in its name."""


def native_uri(server: str, uri: str) -> str:
    if found := _UI.match(uri):
        return f"{found[0]}{server}/{uri[found.end() :]}"
    return f"{_scheme(server)}+{uri}"


def meant(native: str, servers: Iterable[str]) -> tuple[str, str] | None:
    """The server among *servers* whose resource it is, and what that calls it.

    A client may have written what it was given in small letters, where a URI has no others.
    """
    if found := _UI.match(native):
        head, sign, rest = native[found.end() :].partition("/")
        uri = f"{found[0]}{rest}"
    else:
        head, sign, uri = native.partition("+")
    if not sign:
        return None
    alike: str | None = None
    for server in servers:
        if head in (server, scheme := _scheme(server)):
            return server, uri
        if alike is None and head.lower() in (server.lower(), scheme.lower()):
            alike = server
    return None if alike is None else (alike, uri)


def _scheme(server: str) -> str:
    """What its URIs begin with. Of names that no URI can begin with, something like it."""
    if _SCHEME.fullmatch(server):
        return server
    like = re.sub(r"[^A-Za-z0-9.-]", "-", server)
    return f"{'' if like[:1].isalpha() else 's-'}{like}-{digest(server)}"
