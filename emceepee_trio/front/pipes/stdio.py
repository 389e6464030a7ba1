"""One session on standard input and output.

The session ends, with every child, when input ends or a signal comes; what is about to be answered
when input ends has a moment for it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

import anyio
import attrs
import trio
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    RequestId,
)

from ...config import LOCAL, Config
from ...errors import EmceepeeError
from ...model.json.intake import Measure
from ...session.manager import SessionManager, open_sessions
from ...session.questions.relay import CannotBeAsked
from ...session.session import Session
from ...telemetry.export import open_telemetry
from ...views import DEFAULT
from ...waits.firewall import Firewall, begin
from ...waits.watchdog import slow_steps
from ..asking.backchannel import Backchannel
from ..by_the_sdk import mcp_server
from ..faces.face import Face
from ..faces.one_server.face import OneServer
from ..faces.views import FACES
from ..mcp import Front
from .answering import Answering
from .reading import Reading
from .writing import GONE, Out, Owed, Spelled, Writing

SESSION = "default"
PIPE = "pipe"
"""What who traces calls these."""
NOTES = 256
"""Notifications of ours that wait to be written; a client that has more does not read."""
GRACE = 0.25
"""Seconds for requests that are under way when input ends: ``echo … | emceepee stdio``."""
LAST_WORDS = 0.1
"""Seconds to write what the rest of them are told."""


class CannotServe(EmceepeeError):
    """Standard input or output failed; says how."""


@attrs.define(eq=False)
class _Pipes:
    """What has become of standard input and output, beside their ends."""

    trouble: str | None = attrs.field(default=None, init=False)

    def failed(self, doing: str, error: OSError) -> None:
        self.trouble = self.trouble or f"cannot {doing}: {error.strerror}"


async def serve_stdio(
    config: Config, state: Path | None = None, view: str = DEFAULT, server: str | None = None
) -> bool:
    """Serve until standard input ends or a signal comes; then nothing of the session runs.

    Its client is shown the tools of *view*, or *server* as it is. What servers have is remembered
    in the *state* directory, if there is one.

    Returns:
        False if the session ended before, which only a bug of ours can do.

    Raises:
        CannotServe: standard input or output does not work.
    """
    pipes = _Pipes()
    ends = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    with (
        trio.open_signal_receiver(*ends) as signals,
        slow_steps(time.perf_counter, time.thread_time),
    ):
        session = None
        async with (
            open_telemetry(config.telemetry) as tracing,
            open_sessions(config, state, is_local=True, tracing=tracing) as manager,
        ):
            async with trio.open_nursery() as nursery:

                async def stop_on_signal() -> None:
                    async for _ in signals:
                        nursery.cancel_scope.cancel("signal")

                nursery.start_soon(stop_on_signal)
                # Where one server is all there is to see, no other need be started.
                session = await manager.ensure(SESSION, LOCAL, on_demand=server is not None)
                wall = Firewall("session_watch_crashed")
                begin(session.inner, wall, _until_over, nursery.cancel_scope)
                limits = config.limits
                measure = limits.of_clients
                face = FACES[view] if server is None else OneServer(server)
                await _serve(session, manager, face, measure, pipes)
                nursery.cancel_scope.cancel("end of input")
            is_well = session is None or manager.get(SESSION) is session
    if pipes.trouble is not None:
        raise CannotServe(pipes.trouble)
    return is_well


async def _until_over(front: trio.CancelScope) -> None:
    """Without its session the client is better off without us: most start us again."""
    try:
        await trio.sleep_forever()
    finally:
        front.cancel("the session is over")


@attrs.define(eq=False)
class _Channel:
    """What we say of our own accord to a client of the handshake era."""

    _out: Out
    _notes: tuple[
        trio.MemorySendChannel[JSONRPCMessage], trio.MemoryReceiveChannel[JSONRPCMessage]
    ] = attrs.field(factory=lambda: trio.open_memory_channel[JSONRPCMessage](NOTES), init=False)

    async def run(self) -> None:
        async with self._out, self._notes[1] as notes:
            async for note in notes:
                await self._out.send(SessionMessage(note))

    def close(self) -> None:
        self._notes[0].close()

    async def send(self, message: JSONRPCRequest, about: RequestId | None) -> None:
        try:
            await self._out.send(SessionMessage(message))
        except GONE:
            raise CannotBeAsked from None

    def note(self, message: JSONRPCNotification, about: RequestId | None) -> None:
        try:
            self._notes[0].send_nowait(message)
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    def reaches(self) -> bool:
        return True


async def _serve(
    session: Session,
    manager: SessionManager,
    face: Face,
    measure: Measure,
    pipes: _Pipes,
) -> None:
    owed = Owed()
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage | Spelled](0)
    async with trio.open_nursery() as nursery, outgoing.clone() as beside:
        output = trio.lowlevel.FdStream(os.dup(sys.stdout.fileno()))
        writing = Writing(output, from_server, beside, owed)
        failed = partial(pipes.failed, "write to standard output")
        nursery.start_soon(writing.run, nursery.cancel_scope, failed)
        channel = _Channel(outgoing.clone())
        nursery.start_soon(channel.run)
        front = Front(
            session,
            manager,
            face,
            session.draining,
            send=beside.send,
            backchannel=Backchannel(session, channel, face.view, PIPE, session.shared.tracing),
            transport=PIPE,
        )
        async with trio.open_nursery() as calls:
            answering = Answering(front, beside, writing, calls)
            reading = Reading(front, owed, answering, to_server, beside, measure)

            async def read() -> None:
                async with to_server:
                    try:
                        await reading.run()
                    except OSError as error:
                        pipes.failed("read standard input", error)
                    # What only waits ends now, what works soon. Then the dispatcher learns that
                    # input has ended, and refuses the rest; who does not read is told nothing.
                    manager.drain()
                    nursery.cancel_scope.deadline = trio.current_time() + GRACE + LAST_WORDS
                    with trio.move_on_after(GRACE):
                        await owed.wait_none()

            nursery.start_soon(read)
            await serve_dual_era_loop(mcp_server(), incoming, outgoing, lifespan_state=front)
            answering.end()
        channel.close()
