"""What tools see of a backend that another one keeps: what that one knows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..catalogue.catalog import Catalog, Entries, List
from ..catalogue.knowledge import Knowledge
from ..catalogue.memory import Remembered
from ..children.process import Exit, Process
from ..connections.client import Negotiated
from ..connections.health import HealthCheck
from ..private import Private
from ..retries import Retries


class Mirror(ABC):
    """The part of a :class:`~..backend.Backend` that is the same for all who have it."""

    __slots__ = ()

    @property
    @abstractmethod
    def _at(self) -> Private:
        """The one that keeps it."""

    @property
    def connected_at(self) -> float | None:
        return self._at.connected_at

    @property
    def idle_since(self) -> float | None:
        return self._at.idle_since

    @property
    def last_error(self) -> str | None:
        return self._at.last_error

    @property
    def retries(self) -> Retries:
        return self._at.retries

    @property
    def next_try(self) -> float | None:
        return self._at.next_try

    @property
    def next_try_ms(self) -> int:
        return self._at.next_try_ms

    @property
    def process(self) -> Process | None:
        return self._at.process

    @property
    def last_process(self) -> tuple[int, float, Exit] | None:
        return self._at.last_process

    @property
    def waits_for_turn(self) -> bool:
        return self._at.waits_for_turn

    @property
    def unstarted(self) -> str | None:
        return self._at.unstarted

    @property
    def starting(self) -> str | None:
        return self._at.starting

    @property
    def starting_still(self) -> str | None:
        return self._at.starting_still

    @property
    def catalog(self) -> Catalog:
        return self._at.catalog

    @property
    def knowledge(self) -> Knowledge:
        return self._at.knowledge

    @property
    def health(self) -> HealthCheck:
        return self._at.health

    def remembered(self, name: List) -> Remembered | None:
        return self._at.remembered(name)

    def old(self, name: List) -> Entries:
        return self._at.old(name)

    @property
    def agreed(self) -> Negotiated | None:
        return self._at.agreed
