"""The program that runs one script in a sandbox.

It owns the sandbox, which is a process of its own below this one. What the script calls it asks
the daemon for (`outside.py`); it opens no file, knows no server, and ends with its script. Nobody
has to believe what it says: `run.py` has the bounds.

A script's functions return at once with what the script awaits. So as many are under way as it has
gathered, and this program waits for the daemon only when the script can do nothing else.

Nothing of ours imports this: the sandbox is here, and only here.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pydantic_monty as monty

from .crossing import DEPTH, FUNCTIONS, SHOWN, Unsayable, line, plain, pointed
from .outside import Outside, SandboxGone

PRELUDE = "import asyncio, json\nToolError = RuntimeError\n"
"""The sandbox knows no subclasses of exceptions."""
SCRIPT = "<python-input-1>"
"""What the sandbox calls that which is run after the prelude."""
FRAMES = 6
"""Of a traceback, the innermost, that are shown."""
MESSAGE = 4000
"""Characters of an error's message that are."""
FILES = 64
"""That it may have open; it needs a few pipes."""
BASE = 384 * 1024 * 1024
"""Bytes of address space of a program that has done nothing yet, with room to spare."""
EACH = 6
"""Times the sandbox's memory, which values need on their way through here."""
CPU = 5
"""Seconds of processor time that this program and the sandbox's have beyond the script's."""
SUSPENSIONS = 20_000
"""Times that a script may want something of the outside, logging and sleeping too."""
RECURSION = 500
"""Of this program."""
OUT_OF_MEMORY = "1000"
"""How much sooner than others this program goes if the machine has none left: first."""

HINTS = {
    "'coroutine' object": "await the call: what a script calls outside returns an awaitable",
    "feed time limit exceeded": "codemode.cpu_ms; waiting for calls does not count",
    "memory limit": "codemode.memory; keep less at once",
    "No module named": "a script has a part of the standard library and what it can call",
    "does not yet support": "the sandbox knows most of Python, but not that",
}
"""What to say of an error beside what the sandbox says."""


class Servers(tuple[str, ...]):
    """What `servers`, and `servers.name`, are here: the names so far."""

    __slots__ = ()


class Sandboxed:
    """One script, until it has come to something."""

    def __init__(self, pool: monty.Monty, outside: Outside, told: Mapping[str, Any]) -> None:
        self._pool = pool
        self._outside = outside
        self._code: str = told["code"]
        self._shown: int = told["shown"]
        self._limits = monty.ResourceLimits(
            max_memory=told["memory"],
            max_feed_duration_secs=told["seconds"],
            max_suspensions=SUSPENSIONS,
        )
        self._servers: dict[UUID, tuple[str, ...]] = {}
        self._errors: set[str] = set()
        """What tools and refusals have said."""
        self._under_way: set[int] = set()

    def run(self) -> dict[str, Any]:
        """The last message."""
        try:
            with self._pool.checkout(
                limits=self._limits,
                os_policy={"sleep": "call_host"},
                assert_message_annotations=False,
            ) as session:
                session.feed_run(PRELUDE)
                sandbox = session.worker_pid
                assert sandbox is not None  # it has just answered
                self._outside.sandbox = os.pidfd_open(sandbox)
                value = plain(self._drive(session), lenient=True)
        except monty.MontyError as error:
            return self._failed(self._explained(error))
        except SandboxGone:
            return self._failed("the sandbox has ended: it was killed")
        except Unsayable as refused:
            return self._failed(f"the script's result cannot be said: {refused}")
        except RecursionError:
            why = f"it is nested deeper than {DEPTH} levels; make it flatter"
            return self._failed(f"the script's result cannot be said: {why}")
        except MemoryError:
            return self._failed("the script's values have no room here; keep less at once")
        self._outside.flush()
        return {"id": 0, "result": {**self._beginning(value), **self._beside()}}

    def _beginning(self, value: object) -> dict[str, Any]:
        """As much as is shown, and beside it the text of it all."""
        written = json.dumps(value, ensure_ascii=False)
        whole = len(written.encode(errors="replace"))
        if whole <= self._shown:
            return {"value": value}
        shown = value if isinstance(value, str) else written
        cut = shown.encode(errors="replace")[: self._shown].decode(errors="ignore")
        left = {"omitted": whole - len(cut.encode()), "of": whole}
        return {"value": cut, **left, "whole": shown, "is_text": isinstance(value, str)}

    def _beside(self) -> dict[str, int]:
        return {
            "left": len(self._under_way),
            "lost_lines": self._outside.lost_lines,
            "lost_bytes": self._outside.lost_bytes,
        }

    def _failed(self, message: str) -> dict[str, Any]:
        self._outside.flush()
        return {"id": 0, "error": {"code": -32000, "message": message, "data": self._beside()}}

    def _drive(self, session: monty.MontySession) -> object:
        now: Any = session.feed_start(
            self._code,
            inputs={"servers": self._named(())},
            print_callback=self._outside.printed,
        )
        while not isinstance(now, monty.MontyComplete):
            if isinstance(now, monty.FunctionSnapshot):
                now = self._called(now)
            elif isinstance(now, monty.NameLookupSnapshot):
                now = self._looked_up(now)
            else:
                number, answer = self._outside.answer(now.pending_call_ids)
                self._under_way.discard(number)
                self._errors.add(answer.get("message", ""))
                now = now.resume({number: answer})
        return now.output

    def _named(self, names: tuple[str, ...]) -> monty.ClassInstance:
        instance = monty.ClassInstance(Servers(names))
        self._servers[instance.id] = names
        return instance

    def _looked_up(self, now: monty.NameLookupSnapshot) -> object:
        name = now.variable_name
        if now.object_id is not None:
            if self._servers.get(now.object_id) == () and not name.startswith("_"):
                return now.resume(value=self._named((name,)))
        elif name in FUNCTIONS:
            return now.resume(value=_stand_in(name))
        return now.resume()

    def _called(self, now: monty.FunctionSnapshot) -> object:
        name = str(now.function_name)
        if now.is_os_function:
            if name == "time.sleep":
                return self._slept(now)
            if name == "asyncio.sleep":
                return self._asked(now, "sleep", now.args, {})
            return now.resume_not_handled()
        if now.object_id is not None:
            return self._called_tool(now, self._servers.get(now.object_id, ()), name)
        if name == "log":
            return self._logged(now)
        if name in FUNCTIONS:
            return self._asked(now, name, now.args, now.kwargs)
        return _raise(now, "NameError", f"name {name!r} is not defined")

    def _called_tool(
        self, now: monty.FunctionSnapshot, names: tuple[str, ...], tool: str
    ) -> object:
        if len(names) != 1:
            return _raise(now, "TypeError", "a tool is servers.<server>.<tool>(...)")
        args: Any = now.kwargs
        if now.args:
            (args, *more) = now.args
            if more or now.kwargs or not isinstance(args, Mapping):
                said = f"{tool}() takes its arguments by their names, or in one dict"
                return _raise(now, "TypeError", said)
        return self._asked(now, "call_tool", (*names, tool, args), {})

    def _asked(
        self, now: monty.FunctionSnapshot, name: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> object:
        try:
            self._outside.ask(now.call_id, name, args, kwargs)
        except Unsayable as refused:
            return _raise(now, "ValueError", f"{name}(): {refused}")
        self._under_way.add(now.call_id)
        return now.resume({"future": ...})

    def _slept(self, now: monty.FunctionSnapshot) -> object:
        self._outside.ask(now.call_id, "sleep", now.args, {})
        _, answer = self._outside.answer([now.call_id])
        self._errors.add(answer.get("message", ""))
        return now.resume(answer)  # type: ignore[arg-type]  # one of those that are taken

    def _logged(self, now: monty.FunctionSnapshot) -> object:
        """Nobody has to wait for it, but may."""
        self._outside.flush()
        self._outside.log(line(now.args))
        before = self._code.encode()[: now.position.start].rstrip()
        if now.position.filename != SCRIPT or not before.endswith(b"await"):
            return now.resume({"return_value": None})
        self._outside.answered(now.call_id, {"return_value": None})
        return now.resume({"future": ...})

    def _explained(self, error: monty.MontyError) -> str:
        """The exception, and where in the script it was; nothing of this machine."""
        if not isinstance(error, monty.MontyRuntimeError | monty.MontySyntaxError):
            return f"the sandbox has ended: {str(error)[:SHOWN]}"
        said = error.display("type-msg")
        kind, _, message = said.partition(": ")
        if kind == "RuntimeError" and message in self._errors:
            said = f"ToolError: {message}"
        lines = [said[:MESSAGE]]
        lines[0] += next((f" ({hint})" for words, hint in HINTS.items() if words in said), "")
        frames = [frame for frame in error.traceback() if frame.filename == SCRIPT]
        if len(frames) > FRAMES:
            lines.append(f"  … {len(frames) - FRAMES} calls more")
        for frame in frames[-FRAMES:]:
            source = (frame.source_line or "").split("\n")[0]
            end = frame.end_column if frame.end_line == frame.line else None
            columns = frame.column, end
            lines += pointed(source, frame.line, frame.function_name, columns)
        return "\n".join(lines)


def _raise(now: monty.FunctionSnapshot, kind: monty.ExcType, message: str) -> object:
    return now.resume({"exc_type": kind, "message": message})


def _stand_in(name: str) -> object:
    def function() -> None:
        """Never called: the sandbox asks for it by its name."""

    function.__name__ = name
    return function


def restrict(memory: int, seconds: float) -> None:
    """This program and all that it starts, in case that the sandbox does not hold."""
    cpu = math.ceil(seconds) + CPU
    bounds = {
        resource.RLIMIT_AS: BASE + EACH * memory,
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for what, wanted in bounds.items():
        _, hard = resource.getrlimit(what)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(what, (most, most))


def binary() -> str | None:
    """The sandbox's program as it was installed, and no other of that name on the PATH."""
    packages = Path(monty.__file__).parents[1]
    for record in packages.glob("pydantic_monty_runtime-*.dist-info/RECORD"):
        for entry in record.read_text("utf-8").splitlines():
            path = entry.partition(",")[0]
            if path.endswith("/bin/monty"):
                return str((packages / path).resolve())
    return None  # then its package has a way to find it


def main() -> None:
    outside = Outside()
    told = outside.told()["params"]
    outside.most = told["message"]
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OUT_OF_MEMORY)
    restrict(told["memory"], told["seconds"])
    sys.setrecursionlimit(RECURSION)
    with monty.Monty(binary_path=binary(), min_processes=1, max_processes=1) as pool:
        last = Sandboxed(pool, outside, told).run()
        try:
            outside.say(last)
        except Unsayable:
            del last["result"]["whole"]  # the rest of it is short
            outside.say(last)
        os._exit(0)  # whoever waits for this is not to wait for the end of the sandbox, too
