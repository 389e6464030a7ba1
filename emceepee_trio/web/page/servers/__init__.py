"""Servers: `listing` what there are and how they stand · `acting` adding, removing, switching and
reconnecting them, and `entering` what they are · `trying` their tools · `logged` what they write.
"""

from __future__ import annotations

from ..common.pages import Pages
from . import acting, listing, logged, trying


def add_to(pages: Pages) -> None:
    pages.section("/servers", "Servers")
    for part in (listing, acting, trying, logged):
        part.add_to(pages)
