"""Sends traces and measures of time to a collector, by threads of the SDK: OTLP over HTTP.

Nothing of OpenTelemetry is imported unless somebody wants it. Where to, with which headers, how
much of it and how often is said by the ``OTEL_…`` variables, as to all programs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import trio

from .. import logs
from ..config import Telemetry
from ..errors import EmceepeeError
from ..tracing import Tracing
from ..waits.disk import on_disk
from ..waits.firewall import Firewall, begin

GOODBYE = 3.0
"""Seconds in which what is left is sent at the end; who does not take it by then has no more."""
DISABLED = "OTEL_SDK_DISABLED"


class NoExporter(EmceepeeError):
    """What is wanted is not installed."""


@asynccontextmanager
async def open_telemetry(wanted: Telemetry) -> AsyncGenerator[Tracing | None]:
    """Nothing, unless it is *wanted*.

    Raises:
        NoExporter: it is, and the packages for it are not here.
    """
    is_disabled = os.environ.get(DISABLED, "").strip().lower() == "true"
    if is_disabled or not (wanted.traces or wanted.metrics):
        yield None
        return
    tracing, shutdowns = await on_disk(partial(_made, wanted))
    try:
        yield tracing
    finally:
        await _shut_down(shutdowns)  # noqa: ASYNC102 - shielded and bounded itself


Shutdowns: TypeAlias = Sequence[Callable[[], object]]


def _made(wanted: Telemetry) -> tuple[Tracing, Shutdowns]:
    """What sends it. By a thread: to import all that takes half a second."""
    try:
        from . import sdk, spans  # noqa: PLC0415 - for those who want it
    except ImportError as error:
        raise NoExporter(
            f"telemetry.traces and telemetry.metrics need {error.name}, which is not here: "
            "pip install 'emceepee-trio[otel]'"
        ) from None
    tracers = sdk.tracers(wanted.endpoint) if wanted.traces else None
    meters = sdk.meters(wanted.endpoint) if wanted.metrics else None
    shutdowns = [each.shutdown for each in (tracers, meters) if each is not None]
    return spans.Spans.of(tracers, meters), shutdowns


async def _shut_down(shutdowns: Shutdowns) -> None:
    """Send what is left, for as long as that may take."""
    with trio.move_on_after(GOODBYE, shield=True) as patience:  # noqa: ASYNC100 - the nursery waits
        async with trio.open_nursery() as nursery:
            for shutdown in shutdowns:
                begin(nursery, Firewall("telemetry_crashed"), on_disk, shutdown)
    if patience.cancelled_caught:
        logs.write("warn", "telemetry_lost", after_s=GOODBYE)
