"""Styles and scripts: read once, and named with a hash of what they are: browsers keep them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import attrs
from quart import Blueprint, Response, abort

from ...visitors import STATIC
from .requests import to

FOLDER = Path(__file__).parents[1] / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_GOOD = "public, max-age=31536000, immutable"


@attrs.frozen
class _Asset:
    body: bytes
    content_type: str
    version: str


def _found() -> Mapping[str, _Asset]:
    found = {}
    for path in sorted(FOLDER.iterdir()):
        body = path.read_bytes()
        found[path.name] = _Asset(body, TYPES[path.suffix], sha256(body).hexdigest()[:12])
    return found


ASSETS = _found()


def asset(name: str) -> str:
    """Its URL."""
    return f"{to(STATIC)}{ASSETS[name].version}/{name}"


def add_assets(blueprint: Blueprint) -> None:
    @blueprint.get(f"{STATIC}<version>/<name>")
    async def static(version: str, name: str) -> Response:
        found = ASSETS.get(name)
        if found is None or version != found.version:
            abort(404)
        headers = {"Cache-Control": FOR_GOOD}
        return Response(found.body, 200, headers, content_type=found.content_type)
