"""`/metrics`: all that is counted and how things stand, in the formats of Prometheus.

Sessions are looked at in steps, and the text is made in a thread: it may be long, and nobody waits
for it but who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

import attrs
import trio
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from ...config import Config
from ...journal import Journal, Reader
from ...session.manager import SessionManager
from ...telemetry.labels import Labels
from ...waits.disk import on_disk
from ...waits.watchdog import SlowSteps
from .counted import Counted
from .families import Family
from .standing import Standing, of_daemon, standing

CREATED = "_created"
"""When each series began, in a series of its own: a third more to store, and nobody asks."""


@attrs.define(eq=False)
class Metrics:
    """Of one daemon."""

    manager: SessionManager
    slow: SlowSteps = attrs.field(factory=SlowSteps)
    listening: Callable[[], int] = lambda: 0
    """How many clients read what is said to them of its own accord."""
    counted: Counted = attrs.field(init=False)
    _process: ProcessCollector = attrs.field(init=False)
    _configured: tuple[Config | None, frozenset[str]] = attrs.field(
        default=(None, frozenset()), init=False
    )
    """Names of its servers, of a configuration that may have been replaced."""
    _one: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """Held by the one for whom it is looked."""

    def __attrs_post_init__(self) -> None:
        self.counted = Counted(Labels(self._is_configured))
        self._process = ProcessCollector(registry=None)

    def _is_configured(self, server: str) -> bool:
        config = self.manager.config
        if self._configured[0] is not config:
            self._configured = config, frozenset(each.name for each in config.servers)
        return server in self._configured[1]

    @contextmanager
    def reading(self) -> Generator[None]:
        """Counts what is noted in this block."""
        counted = self.counted
        with self.manager.journal.reading(Reader("metrics", counted.read, counted.readers)):
            yield

    async def text(self, accept: str) -> tuple[bytes, str]:
        """And its content type, one that is *accepted*."""
        async with self._one:
            now = await standing(self.manager, self.counted.labels)
            encode, content_type = choose_encoder(accept)
            families = _All(self._families(now))
            return await on_disk(partial(encode, families)), content_type

    def _families(self, now: Standing) -> Callable[[], Iterator[Metric]]:
        journal, ours = self.manager.journal, version("emceepee-trio")
        looked = [*now.families(), *of_daemon(journal, self.slow, self.listening(), ours)]

        def collect() -> Iterator[Metric]:
            yield from self.counted.registry.collect()
            yield from (family.metric() for family in looked)
            yield from self._process.collect()

        return collect


@attrs.define(eq=False)
class _All(Collector):
    """What a monitor gets at once."""

    _collect: Callable[[], Iterator[Metric]]

    def collect(self) -> Iterator[Metric]:
        for family in self._collect():
            family.samples = [each for each in family.samples if not each.name.endswith(CREATED)]
            yield family


def reference() -> list[Family]:
    """All that there is but for what is of the process, in the order of their names."""
    families = (
        *Counted(Labels()).families,
        *Standing(Labels()).families(),
        *of_daemon(Journal(), SlowSteps(), 0, ""),
    )
    return sorted(families, key=lambda family: family.name)
