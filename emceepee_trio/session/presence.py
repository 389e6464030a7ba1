"""Whether anybody is there who uses a session, and since when nobody is."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import attrs
import trio

from ..errors import LimitReached


@attrs.define(eq=False)
class Presence:
    used: bool = attrs.field(default=False, init=False)
    """Its client has done more than say hello."""
    idle_since: float = attrs.field(factory=trio.current_time, init=False)
    """On trio's clock; of no meaning while there is work."""
    waiters: int = attrs.field(default=0, init=False)
    """Requests parked in await_activity or get_task_result."""
    requests: int = attrs.field(default=0, init=False)
    """Under way, and streams that have a reader."""

    def busy(self) -> AbstractContextManager[None]:
        """Entered while a request is under way, or a stream has a reader."""
        return self

    def __enter__(self) -> None:
        self.requests += 1

    def __exit__(self, *_: object) -> None:
        self.requests -= 1
        self.touch()

    def touch(self) -> None:
        self.idle_since = trio.current_time()

    @contextmanager
    def wait_in(self, at_most: int) -> Generator[None]:
        """A place among those who wait for something to happen.

        Raises:
            LimitReached: there is none.
        """
        if self.waiters >= at_most:
            raise LimitReached(
                f"{at_most} requests of this session wait for activity or results already; "
                "one await_activity is enough for everything"
            )
        self.waiters += 1
        try:
            yield
        finally:
            self.waiters -= 1
