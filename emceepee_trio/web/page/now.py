"""What is under way now: the first screen, and the answer to "why is it stuck"."""

from __future__ import annotations

from .common.pages import Data, Pages
from .common.requests import visit


def add_to(pages: Pages) -> None:
    pages.section("/", "Now")

    @pages.view("/", "now.html")
    async def now() -> Data:
        sessions = pages.manager.sessions(visit().visitor.whose)
        working = sum(session.has_work for session in sessions)
        return {"sessions": {"working": working, "idle": len(sessions) - working}}
