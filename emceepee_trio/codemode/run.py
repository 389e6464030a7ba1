"""One script: its program, what comes out of that, and what the script comes to.

Owns the program, from its start until nothing of it is left, and the tasks that do what the script
asks for; they end with it. It knows neither sessions nor tools: what is asked for is done by who
has the script run.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import attrs
import trio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from .. import logs
from ..backend.children.process import Process, open_process
from ..backend.shared import Shared
from ..config.bounds import HOUR, KIB, SECOND
from ..config.settings import Codemode
from ..errors import internal
from ..model.json.intake import Measure
from ..model.text.brief import brief
from ..waits.firewall import Firewall, begin
from .crossing import FUNCTIONS, Unsayable, bound

PROGRAM = """\
import os, sys
os.nice(10)
try:
    with open("/proc/self/autogroup", "w") as group:
        group.write("10")
except OSError:
    pass
sys.modules["asyncio"] = type(sys)("asyncio")
sys.path.insert(0, sys.argv[1])
from emceepee_trio.codemode.worker import main
main()
"""
"""It gives way from its first step on, with all that it starts, since who waits for a call is in
front of who computes; some systems weigh it by its session, too. The sandbox's package imports
asyncio, half of the time it takes, for what is not used here."""
ENVIRONMENT = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
"""Of the program: what a Python that was built with a shared library needs to start."""
PACKAGES = str(Path(__file__).parents[2])

LOGS = 64 * KIB
"""Characters of what a script logs that are kept; the oldest go first, and are counted."""
WAITS = 1000
"""Calls and sleeps of a script that may be under way at once."""

Done: TypeAlias = dict[str, Any]
"""``{"value": …}``, or ``{"text": …}`` that may be JSON: the program parses it, so we need not.
``warnings`` beside it are logged."""


class Raised(Exception):
    """What a script asked for did not work out; it gets the words as an exception."""


class Failed(Exception):
    """The script has; the words say why, and where."""


@attrs.define(eq=False)
class Script:
    """One that runs."""

    code: str
    settings: Codemode
    shown: int
    """Bytes of its value that are wanted."""
    do: Callable[[str, Mapping[str, Any]], Awaitable[Done]]
    """What a script asks for, by the name of the function. Raises `Raised`."""
    on_news: Callable[[Script], object]
    """It has called or logged something."""
    fields: dict[str, Any]
    """For the log."""
    calls: int = attrs.field(default=0, init=False)
    """Those refused, too."""
    logged: deque[str] = attrs.field(factory=deque, init=False)
    """The last lines."""
    lost_lines: int = attrs.field(default=0, init=False)
    """Those before, and how many bytes they and others were cut by."""
    lost_bytes: int = attrs.field(default=0, init=False)
    _log_size: int = attrs.field(default=0, init=False)
    _under_way: int = attrs.field(default=0, init=False)
    _stderr: str = attrs.field(default="", init=False)

    async def run(self, shared: Shared, measure: Measure) -> dict[str, Any]:
        """Its ``value``, and of one that is cut to what is shown how many bytes it has.

        Raises:
            Failed: it has none.
            LimitReached: there are too many programs already.
        """
        with shared.place_for_child():
            try:
                async with open_process(
                    [sys.executable, "-I", "-c", PROGRAM, PACKAGES],
                    env=ENVIRONMENT,
                    cwd="/",
                    measure=measure,
                    on_stderr=self._wrote,
                    on_noise=self._wrote,
                    reaper=shared.reaper,
                ) as process:
                    process.patience = 0  # it has nothing to tidy up
                    return await self._in(process, measure)
            except OSError as error:
                raise Failed(f"the sandbox could not be started: {error.strerror}") from None

    async def _in(self, process: Process, measure: Measure) -> dict[str, Any]:
        told = {
            "code": self.code,
            "memory": self.settings.memory,
            "seconds": self.settings.cpu_ms / SECOND,
            "message": measure.size,
            "shown": self.shown,
        }
        request = JSONRPCRequest(jsonrpc="2.0", id=0, method="run", params=told)
        await self._say(process, request)
        async with trio.open_nursery() as asked:
            last = await self._hear(process, asked)
            asked.cancel_scope.cancel("the script is over")
        if last is None:
            raise Failed(self._why_not(process))
        beside = last.error.data if isinstance(last, JSONRPCError) else last.result
        if isinstance(beside, dict):
            self._count(beside)
        if isinstance(last, JSONRPCError):
            raise Failed(last.error.message)
        return last.result

    async def _hear(
        self, process: Process, asked: trio.Nursery
    ) -> JSONRPCResponse | JSONRPCError | None:
        """The last message, once it has come; None if it does not."""
        async for said in process.reads:
            message = None if isinstance(said, Exception) else said.message
            if isinstance(message, JSONRPCNotification):
                self._log(str((message.params or {}).get("text", "")))
            elif isinstance(message, JSONRPCRequest):
                crashed = partial(self._crashed, process, asked, message)
                wall = Firewall("script_call_crashed", crashed, fields=self.fields)
                begin(asked, wall, self._answer, process, message)
            elif message is not None:
                return message
        return None

    async def _answer(self, process: Process, message: JSONRPCRequest) -> None:
        self._under_way += 1
        try:
            done = await self._do(message.params or {})
        except (Raised, Unsayable) as error:
            await self._say(process, _error(message, str(error)))
        else:
            answer = JSONRPCResponse(jsonrpc="2.0", id=message.id, result=done)
            await self._say(process, answer)
        finally:
            self._under_way -= 1

    async def _do(self, asked: Mapping[str, Any]) -> Done:
        name = asked.get("name")
        if not isinstance(name, str) or name not in FUNCTIONS:  # not of a script
            raise Raised(f"there is no {brief(name)}")
        if self._under_way > WAITS:
            raise Raised(
                f"TOOL_ERR_LIMIT: {WAITS} calls and sleeps of this script are under way "
                "at once; await some of them first"
            )
        if name != "sleep":
            if self.calls >= self.settings.calls:
                raise Raised(
                    f"TOOL_ERR_LIMIT: a script may make {self.settings.calls} calls "
                    "(codemode.calls); leave the rest to another one"
                )
            self.calls += 1
            self.on_news(self)
        given = bound(name, asked.get("args"), asked.get("kwargs"))
        if name == "sleep":
            await trio.sleep(_seconds(given.get("seconds")))
            return {"value": None}
        done = await self.do(name, given)
        for warning in done.pop("warnings", ()):
            if warning not in self.logged:
                self._log(warning)
        return done

    async def _say(
        self, process: Process, message: JSONRPCRequest | JSONRPCResponse | JSONRPCError
    ) -> None:
        try:
            await process.writes.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # it is over, which is told by the end of what it says

    def _crashed(
        self, process: Process, asked: trio.Nursery, message: JSONRPCRequest, log_id: str
    ) -> None:
        wall = Firewall("script_call_crashed", fields=self.fields)
        begin(asked, wall, self._say, process, _error(message, internal(log_id)))

    def _log(self, text: str) -> None:
        self.logged.append(text)
        self._log_size += len(text) + 1
        while self._log_size > LOGS:
            oldest = self.logged.popleft()
            self._log_size -= len(oldest) + 1
            self.lost_lines += 1
            self.lost_bytes += len(oldest)
        self.on_news(self)

    def _count(self, said: Mapping[str, Any]) -> None:
        """What the program has kept to itself, and what it has left behind."""
        lines, size, left = (said.get(name) for name in ("lost_lines", "lost_bytes", "left"))
        if isinstance(lines, int) and isinstance(size, int):
            self.lost_lines += lines
            self.lost_bytes += size
        if isinstance(left, int) and left > 0:
            self.logged.append(
                f"[{left} calls that nobody awaited were under way when the script ended, and are "
                "cancelled: await what is to be done]"
            )

    def _wrote(self, text: str) -> None:
        self._stderr = text

    def _why_not(self, process: Process) -> str:
        exit_ = process.exit
        how = process.failure or (exit_ and (exit_.signal or f"exit code {exit_.code}"))
        logs.write("warn", "sandbox_lost", **self.fields, reason=how, stderr=self._stderr)
        return (
            f"the sandbox has ended before the script has ({how or 'its output was closed'}); try "
            "a smaller part of it, with less data at once"
        )


def _error(message: JSONRPCRequest, said: str) -> JSONRPCError:
    error = ErrorData(code=INTERNAL_ERROR, message=said)
    return JSONRPCError(jsonrpc="2.0", id=message.id, error=error)


def _seconds(given: object) -> float:
    if isinstance(given, int | float) and 0 <= given <= HOUR / SECOND:
        return given
    raise Raised(f"sleep() takes a number of seconds, from 0 to {HOUR // SECOND}")
