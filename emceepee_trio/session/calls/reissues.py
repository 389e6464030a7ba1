"""Calls whose requests have lost their clients, for a while: who sends such a request again joins.

The modern era loses a request with the stream of its answer, and has clients send it again as a new
one. A call that was begun for the lost one goes on meanwhile, and what it comes to is kept; after
that while it is cancelled, as any call whose request is. It knows no requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import trio

from ...config.bounds import MAX_LEFT
from ...model.json.intake import Steps
from ...waits.firewall import Firewall, begin
from ...waits.slices import in_slices
from .call import Call

What: TypeAlias = tuple[str, str, str]
"""What is called: by which tool of ours, of which server, and its name there."""


TICKS = 20
"""Of the scheduler, in which the end of a connection is seen that has come: that often a request
lets others run if its like is under way."""


BREATH = 2000
"""Values that are compared in one step."""


async def see_losses() -> None:
    """Let everybody see what of connections has ended by now."""
    for _ in range(TICKS):
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class Repeatable:
    """One request, and the call that it waits for."""

    what: What
    call: Call
    is_left: bool = attrs.field(default=False, init=False)
    _over: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    def is_like(self, what: What, args: object) -> Steps[bool]:
        if self.what != what:
            return False
        return (yield from _are_alike(self.call.args, args))


def _are_alike(one: object, other: object) -> Steps[bool]:
    """As JSON has it: to Python True is 1, and 1.0 is, too."""
    rest, looks = [(one, other)], 0
    while rest:
        mine, theirs = rest.pop()
        if type(mine) is not type(theirs):
            return False
        if isinstance(mine, dict) and isinstance(theirs, dict):
            if mine.keys() != theirs.keys():
                return False
            rest += [(inner, theirs[key]) for key, inner in mine.items()]
        elif isinstance(mine, list) and isinstance(theirs, list):
            if len(mine) != len(theirs):
                return False
            rest += zip(mine, theirs, strict=True)
        elif mine != theirs:
            return False
        looks += 1
        if looks % BREATH == 0:
            yield
    return True


@attrs.define(eq=False)
class Reissues:
    """Those of one session."""

    nursery: trio.Nursery
    abandon: Callable[[Call, str], None]
    keep_ms: int
    _asked: list[Repeatable] = attrs.field(factory=list, init=False)
    """Those that wait, and those that were left; in the order in which they came."""

    def begin(self, what: What, call: Call) -> Repeatable:
        """A request that may be sent again waits for that call."""
        asked = Repeatable(what, call)
        self._asked.append(asked)
        return asked

    def end(self, asked: Repeatable, *, is_written: bool) -> None:
        """It has its answer, or was cut off before that was written."""
        if is_written or self.nursery.cancel_scope.cancel_called:
            self._forget(asked)
            return
        asked.is_left = True
        wall = Firewall("reissue_crashed", lambda _: self._forget(asked))
        begin(self.nursery, wall, self._wait, asked, name=f"left call {asked.call.id}")
        left = [each for each in self._asked if each.is_left]
        if len(left) > MAX_LEFT:
            self._give_up(left[0])

    async def join(self, what: What, args: object) -> Call | None:
        """The one that was left longest of those that are the same call; nobody else gets it."""
        seen: dict[Repeatable, bool] = {}
        for _ in range(TICKS):
            # Others may be after the same one, which have lost their streams as well.
            for asked in tuple(self._asked):
                if asked not in seen:
                    seen[asked] = await in_slices(asked.is_like(what, args))
            like = [asked for asked in self._asked if seen.get(asked)]
            if not like:
                break
            for asked in like:
                if asked.is_left:
                    self._forget(asked)
                    return asked.call
            await trio.lowlevel.checkpoint()
        return None

    async def _wait(self, asked: Repeatable) -> None:
        with asked._over:
            await trio.sleep(self.keep_ms / 1000)
            # No checkpoint since: nobody has joined.
            self._give_up(asked)

    def _give_up(self, asked: Repeatable) -> None:
        self._forget(asked)
        if asked.call.task is None:  # else it has become one, and goes on as such
            self.abandon(asked.call, "request cancelled by the client")

    def _forget(self, asked: Repeatable) -> None:
        if asked in self._asked:
            self._asked.remove(asked)
        asked._over.cancel("it is joined, or over")
