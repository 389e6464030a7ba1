"""The request that is answered: who asks, and for HTML or JSON; and what every answer says."""

from __future__ import annotations

from typing import Any, cast

from quart import Response, request

from ....errors import InvalidArguments
from ....model.wire import dumps, loads
from ....serving.asgi import Scope
from ...visitors import VISIT, Visit

API = "/api"
"""Below it everything is JSON."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from elsewhere, and nobody shows us in a frame."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer": with that, browsers say `Origin: null` for forms of our own.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def scope() -> Scope:
    """As ASGI has it."""
    return cast(Scope, request.scope)


def visit() -> Visit:
    """The one that is answered now."""
    found: Visit = scope()["state"][VISIT]
    return found


def to(path: str) -> str:
    """A link to a page of ours."""
    return visit().mount + path


def wants_json() -> bool:
    accepted = request.accept_mimetypes
    best = accepted.best_match(["text/html", "application/json"], "text/html")
    return request.path.startswith(f"{API}/") or best == "application/json"


def wants_html() -> bool:
    """It has said so: programs do not."""
    said = request.headers.get("Accept", "")
    return "text/html" in said and not request.path.startswith(f"{API}/")


async def json_body() -> Any:
    """
    Raises:
        InvalidArguments: it is none, or as deep as nobody means it.
    """
    try:
        return loads(cast(bytes, await request.get_data(as_text=False)).decode())
    except (ValueError, RecursionError):
        raise InvalidArguments("the body is no JSON") from None


def json_response(status: int, body: object) -> Response:
    return Response(dumps(body) + "\n", status, content_type="application/json")


async def secured(response: Response) -> Response:
    """Whatever it is."""
    for name, value in HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "no-store")
    return response
