"""What a client was told of one server, in order; for tests of what is told."""

from __future__ import annotations

from emceepee_client import Emceepee, Json

COMEBACK = [
    "process_crashed",
    "server_disconnected",
    "restarting",
    "process_started",
    "restarted",
    "server_reconnected",
]
"""The end of a program that nobody asked for."""

STARTED = ["process_started", "server_connected"]

LIVES = frozenset({*COMEBACK, *STARTED, "process_stopped", "restart_failed"}) | {
    "server_reconnecting",
    "server_added",
    "server_removed",
    "server_health_degraded",
    "server_health_restored",
}
"""The events of a connection, not of what is done over it."""


async def drain(emceepee: Emceepee) -> None:
    """Be told everything there is to tell by now."""
    while (await emceepee.says("await_activity", timeout_ms=0))["events"]:
        pass


def told(emceepee: Emceepee, server: str) -> list[Json]:
    """In the order in which it happened, however it was delivered."""
    events = sorted(emceepee.events, key=lambda event: str(event["id"]))
    return [event for event in events if event["server"] == server]


def kinds(emceepee: Emceepee, server: str) -> list[str]:
    return [event["type"] for event in told(emceepee, server)]


def life(emceepee: Emceepee, server: str) -> list[str]:
    """Of its connection only."""
    return [kind for kind in kinds(emceepee, server) if kind in LIVES]


def data(emceepee: Emceepee, server: str, kind: str) -> list[Json]:
    """Of all events of that type."""
    return [event["data"] for event in told(emceepee, server) if event["type"] == kind]
