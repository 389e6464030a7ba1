"""What a session has of a server, connected or not: the one way in which tools speak of it.

A connection of its own is :class:`~.private.Private`; a share of one that sessions of the same
principal have together is a :class:`~.sharing.lease.Lease`. Whoever asks need not know which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import trio

from ..config import Server
from ..model.states import BackendState
from .catalogue.catalog import Catalog, Entries, List
from .catalogue.knowledge import Knowledge
from .catalogue.memory import Remembered
from .children.process import Exit, Process
from .connections.callbacks import Params
from .connections.client import Client, Negotiated
from .connections.health import HealthCheck
from .preferences import Preferences
from .reconciliation import LostWork
from .retries import Retries

T = TypeVar("T")


class Backend(Protocol):
    """One server as one session has it."""

    restricted: bool
    """Whether ``policy.network`` holds for it; a change counts from the next connection."""

    @property
    def server(self) -> Server: ...

    @property
    def on_demand(self) -> bool:
        """Connected only when it is needed, whatever its entry says."""
        ...

    # What there is of a connection, or was.

    @property
    def state(self) -> BackendState: ...

    @property
    def client(self) -> Client | None: ...

    @property
    def ended(self) -> trio.Event:
        """Nothing of it is left."""
        ...

    @property
    def connected_at(self) -> float | None: ...

    @property
    def idle_since(self) -> float | None:
        """From when on nobody has needed it, until it is connected."""
        ...

    @property
    def last_error(self) -> str | None: ...

    @property
    def retries(self) -> Retries: ...

    @property
    def next_try(self) -> float | None:
        """When, on trio's clock."""
        ...

    @property
    def next_try_ms(self) -> int:
        """How long until then."""
        ...

    @property
    def process(self) -> Process | None: ...

    @property
    def last_process(self) -> tuple[int, float, Exit] | None:
        """Pid, start and end of the child that ran last."""
        ...

    @property
    def unstarted(self) -> str | None:
        """What there is to say to who waits for a connection, while there is none."""
        ...

    @property
    def starting(self) -> str | None:
        """What there is to say of a program that has not answered yet, to whoever waits for it."""
        ...

    @property
    def starting_still(self) -> str | None:
        """The same to everybody, if it takes long."""
        ...

    @property
    def shared_with(self) -> Sequence[str] | None:
        """The clients of the other sessions that have the same connection; None: nobody may."""
        ...

    @property
    def waits_for_turn(self) -> bool:
        """Others start, and its program has to wait until it may."""
        ...

    # What is asked of it.

    async def run(self) -> None:
        """Lives until :meth:`leave`, or until it is cancelled."""
        ...

    def leave(self, reason: str, patience: float) -> None:
        """It is not wanted any more; *patience* is what a child gets for each step of its end."""
        ...

    def wake(self) -> None:
        """Connect now, if that waits for somebody who needs it."""
        ...

    async def connection(self) -> Client:
        """The client, waiting for it if need be; raises `ToolError` if there will be none."""
        ...

    async def reconnect(self, by: str = "") -> Client:
        """Another connection, which that client has asked for; raises the same."""
        ...

    async def ask(self, exchange: Callable[[Client], Awaitable[T]]) -> T:
        """Do *exchange* with the client, waiting for it if need be; once more if it was not run."""
        ...

    async def follow_changes(self) -> Params:
        """Have a modern backend send what is subscribed now; what it agreed to.

        Raises:
            MCPError: it does not do that, or it is gone.
            TimeoutError: it does not say.
        """
        ...

    def roots_changed(self) -> None:
        """It is told others from now on."""
        ...

    # What is known of it.

    @property
    def catalog(self) -> Catalog: ...

    @property
    def knowledge(self) -> Knowledge: ...

    @property
    def health(self) -> HealthCheck: ...

    @property
    def preferences(self) -> Preferences: ...

    @property
    def lost_with(self) -> LostWork:
        """What went with the last connection."""
        ...

    def remembered(self, name: List) -> Remembered | None:
        """A list of a server that nobody has needed yet."""
        ...

    def old(self, name: List) -> Entries:
        """A list as this session was told it last, or would have been."""
        ...

    @property
    def agreed(self) -> Negotiated | None:
        """What it is, as far as that is known."""
        ...
