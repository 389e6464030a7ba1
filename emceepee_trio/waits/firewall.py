"""Firewalls: what nobody expected costs the one thing in whose task it happens, and nothing else.

Whoever shares a nursery with others is begun by :func:`begin` or :func:`begin_lasting`, behind a
:class:`Firewall`. An `Exception` that nobody has caught inside of it is a bug of ours: it is logged
with an id, the thing fails in the way that its firewall was told, and its siblings go on.
Cancellation is no exception and passes, also out of a group with others; so do KeyboardInterrupt
and SystemExit. This is the only place that catches `Exception`. It does not know what it protects.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any, Self

import attrs
import trio

from .. import logs

PAUSES = (1.0, 60.0)
"""Seconds, the first and the longest, before what has to last is begun again. One that has lived
for the longest begins with the first again."""


@attrs.define(eq=False)
class Firewall:
    """Around what one thing does, waiting or not. For one use."""

    event: str
    """What is logged."""
    failed: Callable[[str], object] | None = None
    """Makes it the failure of that thing; told the id in the log. Synchronous."""
    expected: tuple[type[Exception], ...] = ()
    """What is no bug, and passes, unless it comes in a group."""
    fields: dict[str, Any] = attrs.field(factory=dict)
    """Logged beside it."""
    log_id: str | None = attrs.field(default=None, init=False)
    """Of the crash, if there was one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> bool:
        if error is None:
            return False
        bug, rest = self._parted(error)
        if bug is None:
            return False
        self._crash(bug)
        if rest is not None:
            raise rest  # mostly cancellations
        return True

    def _parted(self, error: BaseException) -> tuple[Exception | None, BaseException | None]:
        """What is a bug in it, and what is not."""
        if isinstance(error, BaseExceptionGroup):
            # Nobody expects those, whatever is in them.
            bugs, rest = error.split(Exception)
            assert bugs is None or isinstance(bugs, ExceptionGroup)
            return bugs, rest
        if isinstance(error, Exception) and not isinstance(error, self.expected):
            return error, None
        return None, error

    def _crash(self, bug: Exception) -> None:
        log_id = self.log_id = secrets.token_hex(4)
        if self.failed is not None:
            try:
                self.failed(log_id)
            except Exception as another:  # noqa: BLE001 - the last wall; what is behind it is others'
                bug = ExceptionGroup("it could not even fail", [bug, another])
        logs.crash(self.event, bug, **self.fields, log_id=log_id)


def begin(
    nursery: trio.Nursery,
    firewall: Firewall,
    run: Callable[..., Awaitable[object]],
    *args: object,
    name: object = None,
) -> None:
    """Start a task that costs its siblings nothing, whatever happens in it."""
    nursery.start_soon(_as(run, _behind, firewall, run, args), name=name or run)


def begin_lasting(
    nursery: trio.Nursery,
    event: str,
    run: Callable[..., Awaitable[object]],
    *args: object,
    name: object = None,
    **fields: Any,
) -> None:
    """The same with one that others rely on: after a crash it is begun again, with a pause."""
    nursery.start_soon(_as(run, _again_and_again, event, fields, run, args), name=name or run)


def _as(
    run: Callable[..., Awaitable[object]],
    walled: Callable[..., Coroutine[Any, Any, None]],
    *args: object,
) -> Callable[[], Coroutine[Any, Any, None]]:
    """The task behind the wall, under the name of what it runs: tasks are told apart by that."""

    def start() -> Coroutine[Any, Any, None]:
        task: Any = walled(*args)
        task.__qualname__ = getattr(run, "__qualname__", task.__qualname__)
        return task  # type: ignore[no-any-return]  # a name is not of every coroutine

    return start


async def _behind(
    firewall: Firewall, run: Callable[..., Awaitable[object]], args: tuple[object, ...]
) -> None:
    with firewall:
        await run(*args)


async def _again_and_again(
    event: str,
    fields: dict[str, Any],
    run: Callable[..., Awaitable[object]],
    args: tuple[object, ...],
) -> None:
    first, longest = PAUSES
    pause = first
    while True:
        since = trio.current_time()
        firewall = Firewall(event, fields=fields)
        await _behind(firewall, run, args)
        if firewall.log_id is None:
            return
        if trio.current_time() >= since + longest:
            pause = first
        await trio.sleep(pause)
        pause = min(2 * pause, longest)
