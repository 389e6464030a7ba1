"""What a server writes and says to be logged, in all sessions, as it comes."""

from __future__ import annotations

from ...logged import newest_logs
from ..common.pages import Data, Pages
from ..common.requests import visit
from .listing import find

LINES = 300
"""That are shown, the newest."""


def add_to(pages: Pages) -> None:
    @pages.view("/servers/<name>/logs", "logs.html")
    async def server_logs(name: str) -> Data:
        find(pages, name)
        found = await newest_logs(pages.manager, visit().visitor.whose, name)
        return {"name": name, "logs": found[-LINES:]}
