"""How much of a session may wait for servers at once: calls, what they say, and all else."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import attrs

from ...config import Limits
from ...errors import LimitReached
from .call import Call


@attrs.define(eq=False)
class Places:
    """Those of one session."""

    limits: Limits
    _calls: set[str] = attrs.field(factory=set, init=False)
    """Ids of those whose requests wait for them."""
    _others: int = attrs.field(default=0, init=False)
    """Requests that are no calls of tools, and may wait for a server all the same."""
    _args_bytes: int = attrs.field(default=0, init=False)
    """Of the calls that run, as tasks too."""

    def __iter__(self) -> Iterator[str]:
        """Ids of calls."""
        return iter(self._calls)

    def __len__(self) -> int:
        """As many calls."""
        return len(self._calls)

    def check(self) -> None:
        """Raises `LimitReached` if there are too many, calls and others together."""
        if len(self._calls) + self._others >= self.limits.calls:
            raise LimitReached(
                f"{self.limits.calls} calls are in flight in this session (limits.calls); "
                "wait for some of them to finish"
            )

    def check_args(self, size: int) -> None:
        """Raises `LimitReached` if there is no room for so many bytes of arguments more."""
        if self._args_bytes + size > self.limits.calls_bytes:
            raise LimitReached(
                "the arguments of the calls and tasks under way would have more than "
                f"{self.limits.calls_bytes} bytes (limits.calls_bytes); wait for some of them to "
                "finish"
            )

    @contextmanager
    def one(self) -> Generator[None]:
        """Around a request that is no call. Raises `LimitReached` if there is none."""
        self.check()
        self._others += 1
        try:
            yield
        finally:
            self._others -= 1

    def take(self, call: Call) -> None:
        self._calls.add(call.id)
        self._args_bytes += call.args_bytes

    def leave(self, call: Call) -> None:
        """Its request waits no longer, for one reason or another; it may run on."""
        self._calls.discard(call.id)

    def over(self, call: Call) -> None:
        """It runs no more."""
        self._args_bytes -= call.args_bytes
