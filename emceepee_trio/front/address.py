"""What the URL of a request says: which workspace it is of, and which view its client has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from mcp_types import INVALID_PARAMS

from ..serving.asgi import Refused, Scope
from .faces.face import Face

DEFAULT_WORKSPACE = "main"
_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def face_of(scope: Scope, faces: Mapping[str, Face]) -> Face:
    """What is shown: the view of ``?view=NAME``.

    Raises:
        Refused: there is no such view.
    """
    names = _query(scope).get("view", [next(iter(faces))])
    if len(names) != 1 or names[0] not in faces:
        said = " and ".join(map(repr, names))
        raise Refused(400, f"no view {said}; there are {', '.join(faces)}", code=INVALID_PARAMS)
    return faces[names[0]]


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
    return parse_qs(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
