"""The configuration is read again because a program asks for it, which is told what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from ..errors import Denied, InvalidArguments
from .page.common.pages import Changed, Done, Pages
from .page.common.requests import visit, wants_json

UNCHANGED = "so nothing has changed"
IN_PART = (
    "but what came before the bug may be gone by; start the daemon anew to have all or nothing"
)


class Reread(Protocol):
    """What can be read again."""

    told: Callable[[], object]
    """Is called when it was, by whomever."""

    def again(self) -> Sequence[str]:
        """What is wrong, each problem in a line; then nothing has changed, but see below."""
        ...

    @property
    def is_in_part(self) -> bool:
        """A bug of ours was met when it was read last, so some of it may be gone by."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Where it was read from, when, and what was wrong."""
        ...


def add_to(pages: Pages, reading: Reread | None) -> None:
    if reading is not None:
        reading.told = partial(pages.live.changed, None)
        pages.configured = reading.to_json

    @pages.act("/reload")
    async def reload() -> Changed:
        if visit().visitor.whose is not None:
            raise Denied("the configuration is read again for the daemon's own token alone")
        if reading is None:
            raise Denied("this daemon is inside of another program, which says what it goes by")
        problems = list(reading.again())
        if problems and not wants_json():
            return pages.go("/servers#configuration")  # which tells all of them
        if problems:
            more = f" (and {len(problems) - 1} more)" * (len(problems) > 1)
            outcome = IN_PART if reading.is_in_part else UNCHANGED
            said = f"the configuration is not read, {outcome}: {problems[0]}{more}"
            raise InvalidArguments(said, {"problems": problems, "outcome": outcome})
        count = len(pages.manager.config.servers)
        return Done("/servers", f"The configuration is read: {count} server{'s' * (count != 1)}.")
