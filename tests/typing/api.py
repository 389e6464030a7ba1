"""emceepee inside of a Quart of your own, at ``/emceepee/mcp``.

``hypercorn --worker-class trio --workers 0 api:app`` serves it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from typing import Any

from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from quart_trio import QuartTrio

from emceepee_trio import Config, Server, open_app

MOUNT = "/emceepee"
CONFIG = Config(
    servers=(Server("demo", command=sys.executable, args=("-m", "emceepee_trio.demo_backend")),)
)

quart = QuartTrio(__name__)


@quart.get("/")
async def hello() -> str:
    return "a page of your own"


@quart.while_serving
async def emceepee() -> AsyncGenerator[None]:
    async with open_app(CONFIG, credentials={"ada": os.environ["ADAS_TOKEN"]}) as app:
        quart.extensions["emceepee"] = app
        yield  # noqa: ASYNC119 - Quart goes on with it, and ends it, in one task


async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Both: what begins with the mount is emceepee's, all else is yours."""
    if scope["type"] == "http" and scope["path"].startswith(f"{MOUNT}/"):
        mounted: Any = quart.extensions["emceepee"]
        await mounted({**scope, "root_path": MOUNT}, receive, send)
    else:
        await quart(scope, receive, send)
