"""What the URL of a request says: which workspace it is of, and which view its client has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from mcp_types import INVALID_PARAMS

from ..serving.asgi import Refused, Scope
from .faces.face import Face
from .faces.one_server.face import OneServer

DEFAULT_WORKSPACE = "main"
_ONE_SERVER = re.compile(r"/servers/([^/]{1,200})/mcp/?")
_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def face_of(scope: Scope, faces: Mapping[str, Face], usual: str | None = None) -> Face:
    """What is shown: the server of ``/servers/NAME/mcp``, or the view of ``?view=NAME``, else that
    which is *usual* for who asks.

    Raises:
        Refused: there is no such view.
    """
    if (server := server_of(scope["path"])) is not None:
        return OneServer(server)
    names = _query(scope).get("view", [usual or next(iter(faces))])
    if len(names) != 1 or names[0] not in faces:
        said = " and ".join(map(repr, names))
        raise Refused(400, f"no view {said}; there are {', '.join(faces)}", code=INVALID_PARAMS)
    return faces[names[0]]


def server_of(path: str) -> str | None:
    """The name of the server that is alone to be seen at that path."""
    found = _ONE_SERVER.fullmatch(path)
    return None if found is None else found[1]


def names_workspace(scope: Scope) -> bool:
    return "session" in _query(scope)


def workspace_of(scope: Scope, principal: str) -> str:
    """The name of the session that is ``?session=NAME`` of *principal*.

    Raises:
        Refused: nothing can have that name.
    """
    names = _query(scope).get("session", [DEFAULT_WORKSPACE])
    if len(names) != 1 or not _WORKSPACE.fullmatch(names[0]):
        raise Refused(400, f"session must be a name like {_WORKSPACE.pattern}", code=INVALID_PARAMS)
    return f"{principal}/{names[0]}"


def _query(scope: Scope) -> dict[str, list[str]]:
    query = scope.get("query_string", b"").decode("latin-1")
    return parse_qs(query, keep_blank_values=True) if query else {}
