"""What tasks have come to, for as long as somebody may fetch it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

import attrs
import trio

from ...config import Limits
from ...journal import Journal
from ...model import facts
from .call import Call


@attrs.define(eq=False)
class Finished:
    """Those of one session, in the order of their end, in which they are forgotten."""

    limits: Limits
    session_id: str
    journal: Journal
    on_kept: Callable[[float], None]
    """Something is kept until then, on trio's clock."""
    forget: Callable[[str], object]
    """It is not known by its id any more."""
    _calls: OrderedDict[str, Call] = attrs.field(factory=OrderedDict, init=False)
    _bytes: int = attrs.field(default=0, init=False)

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._calls

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls.values())

    def keep(self, call: Call) -> None:
        """What it has come to, while there is room and time."""
        self._calls[call.id] = call
        self._bytes += call.size
        self.journal.note(facts.ResultKept, self.session_id, call.id, call.size)
        self._evict()
        self.on_kept(call.expires)

    def read(self, call: Call) -> None:
        """Somebody has fetched it."""
        self.journal.note(facts.ResultRead, self.session_id, call.id)

    def _evict(self) -> None:
        """Forget the oldest beyond ``limits.results``."""
        while len(self._calls) > self.limits.results or (
            self._bytes > self.limits.results_bytes and len(self._calls) > 1
        ):
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        task_id, call = self._calls.popitem(last=False)
        self._bytes -= call.size
        self.forget(task_id)
        self.journal.note(facts.ResultEvicted, self.session_id, task_id)

    def next_due(self) -> float | None:
        oldest = next(iter(self), None)
        return oldest.expires if oldest is not None else None

    def sweep(self) -> None:
        """Forget what has been kept long enough."""
        now = trio.current_time()
        while (due := self.next_due()) is not None and due <= now:
            self._forget_oldest()
