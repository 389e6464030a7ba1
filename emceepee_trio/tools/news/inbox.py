"""What backends said of their own accord: notifications and logs; and what they are told: roots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import trio

from ...config.bounds import MAX_LOGS_RETURNED, MAX_ROOTS, MAX_ROOTS_BYTES, MAX_URI
from ...config.roots import Folder
from ...config.server import A_NAME, FEW
from ...errors import InvalidArguments
from ...model.json.fields import Bounds, Doc, Most, Pattern, frozen
from ...model.json.problems import Problem
from ...model.protocol.levels import at_least
from ...model.states import BackendState
from ...model.wire import to_snake
from ...session.buffers import LogEntry
from ...waits.slices import in_slices
from ..common.asking import ask
from ..common.listing import Cursor, room_of, whose_cursor
from ..common.registry import ACTS, READS, SETS, NoArguments, Request, tool
from ..common.response import Reply, json_reply, long_reply

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
Source = Literal["protocol", "stderr", "stdout"]


@frozen
class GetNotifications:
    server: Annotated[str | None, A_NAME] = None
    limit: Annotated[int | None, Bounds(1, 100_000)] = None


@tool("Notifications of servers, oldest first; removed when returned.", GetNotifications, ACTS)
async def get_notifications(request: Request, asked: GetNotifications) -> Reply:
    buffers = request.session.buffers
    found = buffers.take_notifications(asked.server, asked.limit, room_of(request))
    more = buffers.count_notifications(asked.server)
    said = {"more": more} if more else {}
    return await long_reply({"notifications": [to_snake(entry) for entry in found]} | said)


@frozen
class GetLogs:
    server: Annotated[str | None, A_NAME] = None
    level: Annotated[LogLevel, Doc("this and worse")] = "debug"
    sources: Annotated[tuple[Source, ...] | None, FEW] = None
    exclude_sources: Annotated[tuple[Source, ...], FEW] = ()
    limit: Annotated[int, Bounds(1, MAX_LOGS_RETURNED)] = 100
    clear: Annotated[bool, Doc("forget what matched")] = True
    cursor: Annotated[str | None, A_NAME] = None


@tool(
    "The newest log messages, stderr and stray output of servers.",
    GetLogs,
    ACTS,
)
async def get_logs(request: Request, asked: GetLogs) -> Reply:
    is_bad_enough = at_least(asked.level)

    def wanted(entry: LogEntry) -> bool:
        return (
            is_bad_enough(entry.level)
            and (asked.sources is None or entry.source in asked.sources)
            and entry.source not in asked.exclude_sources
        )

    whose = whose_cursor("logs", asked)
    start = Cursor.of(asked.cursor, whose)
    left, _, until = start.group.partition("@")  # of the limit, and from when on
    if start.group and not (left.isdecimal() and len(left) < 4 and until):
        raise InvalidArguments("cursor: not one; it is what the page before ended with")
    found, dropped, more = await in_slices(
        request.session.buffers.take_logs(
            wanted,
            asked.server,
            int(left) if left else asked.limit,
            clear=asked.clear,
            room=room_of(request),
            until=until or None,
            but=start.at,
        )
    )
    said: dict[str, Any] = {"logs": [to_snake(entry) for entry in found], "dropped": dropped}
    if more:
        when = found[0].timestamp
        shown = sum(entry.timestamp == when for entry in found) + start.at * (until == when)
        following = Cursor(f"{more}@{when}", 0 if asked.clear else shown)
        said |= {"more": more, "cursor": following.spelled(whose)}
    return await long_reply(said)


@frozen
class SetLogLevel:
    server: Annotated[str, A_NAME]
    level: LogLevel


@tool("Set how much a server logs.", SetLogLevel, ACTS, waits=True)
async def set_log_level(request: Request, asked: SetLogLevel) -> Reply:
    backend = request.session.backend(asked.server)
    if backend.state is BackendState.IDLE:
        # Nothing logs; it is told as soon as somebody needs it.
        backend.preferences.log_level = asked.level
        return json_reply({"server": asked.server, "level": asked.level})
    client = await backend.connection()
    if client.negotiated.is_modern:
        client.log_level = asked.level  # goes with every request from now on
    else:
        await ask(request, backend, "logging/setLevel", {"level": asked.level})
    backend.preferences.log_level = asked.level
    return json_reply({"server": asked.server, "level": asked.level})


@tool("The roots that servers are told.", NoArguments, READS)
async def get_roots(request: Request, _: NoArguments) -> Reply:
    return _roots(request)


def _roots(request: Request) -> Reply:
    said: dict[str, Any] = {"roots": request.session.roots()}
    if by_server := request.session.told_roots.by_server():
        said["by_server"] = by_server
    return json_reply(said)


@frozen
class Root:
    uri: Annotated[str, Most(most_characters=MAX_URI), Pattern("file://.+", "a file:// URI")]
    name: Annotated[str | None, A_NAME] = None


@frozen
class SetRoots:
    roots: Annotated[tuple[Root, ...], Most(MAX_ROOTS)]

    def problems(self) -> Iterator[Problem]:
        if (size := sum(len(root.uri) + len(root.name or "") for root in self.roots)) > (
            MAX_ROOTS_BYTES
        ):
            yield Problem("roots", f"too long: {size} characters, at most {MAX_ROOTS_BYTES}")


@tool(
    "Tell servers which folders they may work in. Where some are configured, only within those.",
    SetRoots,
    SETS,
)
async def set_roots(request: Request, asked: SetRoots) -> Reply:
    told = request.session.told_roots
    chosen = [Folder(root.uri, root.name) for root in asked.roots]
    work = told.choice(chosen)
    # Whatever paths there are, and on whatever disks: nobody else waits for them.
    choice = await trio.to_thread.run_sync(work) if told.needs_disk else work()
    request.session.choose_roots(choice)
    return _roots(request)


TOOLS = (get_notifications, get_logs, set_log_level, get_roots, set_roots)
