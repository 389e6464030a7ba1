"""Where what happens is noted, once, by whoever does it, and handed to whoever keeps it.

Whoever decides something notes it, synchronously, at the line that does, and knows no reader. Each
reader gets every fact of the kinds that it wants at once, in order, and must not block: whoever
is slower than that keeps them. What a reader raises is a bug of its own, and costs nobody else
anything. A kind that nobody wants is not even made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from itertools import count
from typing import Any, Concatenate, ParamSpec

import attrs

from . import logs
from .model.facts import Fact

P = ParamSpec("P")


@attrs.define(eq=False)
class Reader:
    """Somebody who wants facts."""

    name: str
    """For the log."""
    read: Callable[[Any], object]
    """Called with each fact. Notes nothing itself."""
    kinds: Collection[type[Fact]]
    crowded_out: Callable[[], int] = lambda: 0
    """How many facts it had no room for."""
    failures: int = attrs.field(default=0, init=False)
    """Facts that it has failed to read; only the first is logged."""

    def failed(self, bug: Exception) -> None:
        self.failures += 1
        if self.failures == 1:
            logs.crash("reader_crashed", bug, reader=self.name)


@attrs.define(eq=False, repr=False)
class Journal:
    """Of everything in one daemon."""

    clock: Callable[[], float] = time.time
    _wanted: dict[Callable[..., Fact], tuple[Reader, ...]] = attrs.field(factory=dict, init=False)
    """By whom each kind is, in the order in which they came."""
    _numbers: count[int] = attrs.field(factory=lambda: count(1), init=False)
    _is_telling: bool = attrs.field(default=False, init=False)

    def note(
        self, kind: Callable[Concatenate[float, P], Fact], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """It has happened, now. Never fails, and never waits."""
        readers = self._wanted.get(kind)
        if readers is None:
            return
        fact = kind(self.clock(), *args, **kwargs)
        # Else those who come after that reader would have the facts in another order.
        assert not self._is_telling, "readers note nothing"
        self._is_telling = True
        try:
            for reader in readers:
                try:
                    reader.read(fact)
                except Exception as bug:  # noqa: BLE001 - a firewall: whoever notes is in the middle of something
                    reader.failed(bug)
        finally:
            self._is_telling = False

    def number(self) -> int:
        """An id for what has none."""
        return next(self._numbers)

    @property
    def readers(self) -> list[Reader]:
        """Each once."""
        return list(dict.fromkeys(each for readers in self._wanted.values() for each in readers))

    @contextmanager
    def reading(self, reader: Reader) -> Generator[Reader]:
        """It is told what is noted meanwhile."""
        self.add(reader)
        try:
            yield reader
        finally:
            self.remove(reader)

    def add(self, reader: Reader) -> None:
        for kind in reader.kinds:
            self._wanted[kind] = (*self._wanted.get(kind, ()), reader)

    def remove(self, reader: Reader) -> None:
        for kind in reader.kinds:
            left = tuple(other for other in self._wanted[kind] if other is not reader)
            if left:
                self._wanted[kind] = left
            else:
                del self._wanted[kind]
