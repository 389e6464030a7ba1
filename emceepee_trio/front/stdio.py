"""One session on standard input and output.

Standard input is read in a thread that may be abandoned, so that neither a signal nor the end has
to wait for a client that says nothing. The session ends, with every child, when input ends; what
is about to be answered then has a moment for it.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import attrs
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from ..config import LOCAL, Config
from ..config.bounds import MAX_BATCH, MAX_UNANSWERED
from ..errors import EmceepeeError, internal
from ..model.json.intake import Measure, TooMuch, Unfit, outlines, read
from ..model.wire import loads
from ..session.manager import SessionManager, open_sessions
from ..session.relay import CannotBeAsked
from ..session.session import Session
from ..waits.bell import Bell
from ..waits.firewall import Firewall, begin
from ..waits.slices import in_slices
from ..waits.watchdog import slow_steps
from ..web.wire import answer, dump, id_of_one, spelled
from .asking.backchannel import Backchannel
from .faces.face import Face
from .faces.one_server import OneServer
from .faces.views import FACES
from .mcp import Front, mcp_server

SESSION = "default"
CHUNK = 65536
EDGE = 512
"""Bytes kept of the beginning and the end of a line that is too long."""
NOTES = 256
"""Notifications of ours that wait to be written; a client that has more does not read."""
GRACE = 0.25
"""Seconds for requests that are under way when input ends: ``echo … | emceepee stdio``."""
LAST_WORDS = 0.1
"""Seconds to write what the rest of them are told."""

_ID = rb'"id"\s*:\s*(\d{1,15}|"[\w-]{1,100}")\s*'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"[,}]")
_ID_LAST = re.compile(rb"(?<!\\)" + _ID + rb"\}\s*$")

In = MemoryObjectSendStream[SessionMessage | Exception]
Out = MemoryObjectSendStream[SessionMessage]
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)
"""Nobody takes messages, or answers, any more."""


class CannotServe(EmceepeeError):
    """Standard input or output failed; says how."""


@attrs.define(eq=False)
class _Pipes:
    """What has become of standard input and output, beside their ends."""

    trouble: str | None = attrs.field(default=None, init=False)

    def failed(self, doing: str, error: OSError) -> None:
        self.trouble = self.trouble or f"cannot {doing}: {error.strerror}"


async def serve_stdio(
    config: Config, state: Path | None = None, view: str = "tools", server: str | None = None
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
        async with open_sessions(config, state, is_local=True) as manager:
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
                measure = Measure(limits.body, limits.values)
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


@attrs.define(eq=False)
class _Unanswered:
    """Requests that were read and whose answers are not written."""

    _ids: set[str | int] = attrs.field(factory=set, init=False)
    _none: Bell = attrs.field(factory=Bell, init=False)

    def __len__(self) -> int:
        return len(self._ids)

    def read(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(coerce_request_id(message.id))
        elif isinstance(message, JSONRPCNotification) and (
            message.method == "notifications/cancelled"
        ):
            # It will not be answered.
            self._forget((message.params or {}).get("requestId"))

    def wrote(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._forget(message.id)

    def _forget(self, request_id: Any) -> None:
        if isinstance(request_id, str | int):
            self._ids.discard(coerce_request_id(request_id))
            if not self._ids:
                self._none.ring()

    async def wait_none(self) -> None:
        while self._ids:
            await self._none.wait()


async def _serve(
    session: Session,
    manager: SessionManager,
    face: Face,
    measure: Measure,
    pipes: _Pipes,
) -> None:
    front, unanswered = Front(session, manager, face, session.draining), _Unanswered()
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with trio.open_nursery() as nursery, outgoing.clone() as beside:
        front.send = beside.send
        nursery.start_soon(_write, from_server, unanswered, nursery.cancel_scope, pipes)
        channel = _Channel(outgoing.clone())
        nursery.start_soon(channel.run)
        front.backchannel = Backchannel(session, channel, face.server is not None)

        async def read() -> None:
            async with to_server, outgoing.clone() as replies:
                try:
                    await _read(front, unanswered, to_server, replies, measure)
                except OSError as error:
                    pipes.failed("read standard input", error)
                # What only waits ends now, what works soon. Then the dispatcher learns that input
                # has ended, and refuses the rest; a client that does not read is told nothing.
                manager.drain()
                nursery.cancel_scope.deadline = trio.current_time() + GRACE + LAST_WORDS
                with trio.move_on_after(GRACE):
                    await unanswered.wait_none()

        nursery.start_soon(read)
        await serve_dual_era_loop(mcp_server(), incoming, outgoing, lifespan_state=front)
        channel.close()


async def _read(
    front: Front, unanswered: _Unanswered, to_server: In, replies: Out, measure: Measure
) -> None:
    """Lines of standard input, each a message or (2025-03-26) a list of them, until it ends."""
    line, too_long, limit = bytearray(), False, measure.size
    while chunk := await trio.to_thread.run_sync(
        _chunk, sys.stdin.fileno(), abandon_on_cancel=True
    ):
        *ends, beginning = chunk.split(b"\n")
        for end in ends:
            line += end
            if too_long or len(line) > limit:
                message = f"message too long (limits.body {limit} bytes)"
                await replies.send(_refusal(_id_at_an_edge(line), message))
            elif line.strip():
                with Firewall("message_crashed", None, GONE) as wall:
                    await _take(front, unanswered, bytes(line), to_server, replies, measure)
                if wall.log_id is not None:
                    bug = _refusal(_id_at_an_edge(line), internal(wall.log_id), INTERNAL_ERROR)
                    await replies.send(bug)
            line.clear()
            too_long = False
        line += beginning
        if len(line) > limit:
            too_long = True
            del line[EDGE:-EDGE]


def _chunk(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            # Somebody, or our own writer where it is one file with standard output, made it so.
            select.select([fd], [], [])


def _id_at_an_edge(line: bytes | bytearray) -> str | int | None:
    """The id of a request that is not parsed; every known client writes it first or last."""
    if found := _ID_FIRST.match(line) or _ID_LAST.search(line[-EDGE:]):
        request_id: str | int = json.loads(found[1])
        return request_id
    return None


async def _take(
    front: Front,
    unanswered: _Unanswered,
    line: bytes,
    to_server: In,
    replies: Out,
    measure: Measure,
) -> None:
    try:
        data = await in_slices(read(line, measure, loads))
    except Unfit as unfit:
        # What is JSON that is too much may be a request; of what is not, no id is to be believed.
        is_much = isinstance(unfit, TooMuch)
        known = id_of_one(await in_slices(outlines(line))) if is_much else None
        code = PARSE_ERROR if known is None else INVALID_REQUEST
        await replies.send(_refusal(known, f"the message {unfit}", code))
        return
    if isinstance(data, list) and len(data) > MAX_BATCH:
        await replies.send(_refusal(None, f"a batch of more than {MAX_BATCH} messages"))
        return
    at_most = front.session.config.limits.calls + MAX_UNANSWERED
    for item in data if isinstance(data, list) and data else [data]:
        try:
            message = jsonrpc_message_adapter.validate_python(item, by_name=False)
        except ValidationError:
            message = None
        asked = isinstance(item, dict) and "method" in item
        request_id = item.get("id") if asked else None
        if asked and "id" in item and type(request_id) not in (int, str):
            # To the adapter, a request whose id is no id is a notification.
            message = request_id = None
        if isinstance(message, JSONRPCRequest) and len(unanswered) >= at_most:
            # Who does not read this either is not read from until it does.
            said = f"more than {at_most} requests wait for their answers; read those first"
            await replies.send(_refusal(message.id, said))
        elif message is not None:
            if front.observe(message):
                continue
            unanswered.read(message)
            await to_server.send(SessionMessage(message))
        elif not asked or "id" in item:  # else a notification, which has nobody to be told
            await replies.send(_refusal(request_id, "not a JSON-RPC 2.0 message"))


def _refusal(request_id: Any, message: str, code: int = INVALID_REQUEST) -> SessionMessage:
    error = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


async def _line(message: JSONRPCMessage) -> str | None:
    """What is written of it; nothing of a notification that cannot be."""
    if isinstance(message, JSONRPCResponse | JSONRPCError):
        return (await answer(message))[0]
    if isinstance(message, JSONRPCRequest):
        return await spelled(message)
    with Firewall("notification_crashed"):
        return dump(message)
    return None


async def _write(
    from_server: MemoryObjectReceiveStream[SessionMessage],
    unanswered: _Unanswered,
    client: trio.CancelScope,
    pipes: _Pipes,
) -> None:
    """Lines to standard output; a client that does not read holds up only this task."""
    # A duplicate, because closing it also undoes its being non-blocking.
    output = trio.lowlevel.FdStream(os.dup(sys.stdout.fileno()))
    async with from_server, output:
        async for item in from_server:
            line = await _line(item.message)
            if line is None:
                continue
            try:
                await output.send_all(line.encode() + b"\n")
            except trio.BrokenResourceError as error:
                cause = error.__cause__
                if isinstance(cause, OSError) and not isinstance(cause, BrokenPipeError):
                    pipes.failed("write to standard output", cause)
                client.cancel("nobody reads our output")
                return
            unanswered.wrote(item.message)
