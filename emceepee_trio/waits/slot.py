"""A one-shot result: the first writer wins, everybody may read.

This is what decides a fate. Deadlines and cancellations only wake tasks; whoever wants to end
something settles its slot first and acts (cancels a scope, tells a peer) second. Settling is
synchronous, so nothing can run between the look and the write.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs
import outcome
import trio

T = TypeVar("T")


@attrs.define(eq=False)
class Slot(Generic[T]):
    """Empty, then for ever a value or for ever an error."""

    _outcome: outcome.Value[T] | outcome.Error | None = attrs.field(default=None, init=False)
    _settled: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def is_settled(self) -> bool:
        return self._outcome is not None

    @property
    def error(self) -> BaseException | None:
        """What it failed with, if it did."""
        return self._outcome.error if type(self._outcome) is outcome.Error else None

    def set(self, value: T) -> bool:
        """True if this decided it; False if somebody was first."""
        return self._settle(outcome.Value(value))

    def fail(self, error: Exception) -> bool:
        """True if this decided it; False if somebody was first."""
        return self._settle(outcome.Error(error))

    def _settle(self, result: outcome.Value[T] | outcome.Error) -> bool:
        if self._outcome is not None:
            return False
        self._outcome = result
        self._settled.set()
        return True

    def peek(self) -> T:
        """The value, or the error raised; any number of times, once settled."""
        if self._outcome is None:
            raise RuntimeError("not settled yet")
        # By exact type: to be an instance of an abstract class is dear to find out.
        if type(self._outcome) is outcome.Error:
            # Not outcome.unwrap(): it may be asked for again, and tracebacks would pile up.
            raise self._outcome.error.with_traceback(None)
        return self._outcome.value

    async def wait(self) -> None:
        """Park until settled; the stored error is not raised."""
        await self._settled.wait()

    async def wait_result(self) -> T:
        await self._settled.wait()
        return self.peek()
