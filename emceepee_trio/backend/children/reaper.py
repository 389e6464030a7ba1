"""That nothing of a child is left: of one that has ended, and of all if we are killed.

Owns the tags that children carry in their environment, and the helper (:mod:`.lifeline`) that holds
the other end of a pipe of ours: however we end, that end is closed. Does not know what a child is
for, nor ends the child itself: :mod:`.process` does.

Where there is no /proc, nothing is tagged and there is no helper; process groups have to do.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import trio

from ... import logs
from ...waits.firewall import begin_lasting
from . import lifeline

LOOKS = (0.0, 0.0)
"""Twice: one look misses who forks and exits, or begins another program, just while we look."""
PATIENCE = 2.0
"""Seconds to end what a child has left behind; who cannot be ended in that is left to the helper's
end, or to the kernel."""
PAUSE = 1.0
"""Seconds a helper has to live before it is killed, else the next one comes only after as many."""
LONG_PAUSE = 60.0
"""Seconds to the next try if one could not be started."""
GOODBYE = 2.0
"""Seconds the helper may take to end once we have said goodbye, and again once it is killed."""

HAS_PROC = Path("/proc/self/environ").exists()

# Empty but for what a Python that was built with a shared library needs to start.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}


@attrs.define(eq=False)
class Kin:
    """A child and all that it starts, by the tag they share. Made by :meth:`Reaper.watch` only."""

    _reaper: Reaper
    tag: str = attrs.field(repr=False)
    words: str
    """What the helper is told of the child: its pid, and when it started."""

    async def end(self) -> None:
        """The child is over, and so is its group: now end what has left that. Shielded, bounded.

        No checkpoint between the child's own end and this, else its number may be another's.
        """
        await self._reaper.end(self)


@attrs.define(eq=False)
class Reaper:
    """Made by :func:`open_reaper` only."""

    _token: str = attrs.field(factory=lambda: secrets.token_hex(16), init=False, repr=False)
    _kin: set[Kin] = attrs.field(factory=set, init=False, repr=False)
    """Of children that run."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    _settled: trio.Event = attrs.field(factory=trio.Event, init=False)
    """A helper was started, or cannot be."""
    _helper: trio.Process | None = attrs.field(default=None, init=False)
    _lifeline: int = attrs.field(default=-1, init=False)
    _looking: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    _to_end: set[str] = attrs.field(factory=set, init=False, repr=False)

    async def tag(self, environment: Mapping[str, str]) -> dict[str, str]:
        """*environment* with a tag, for one child. From here on the helper would end it."""
        self._wanted.set()
        await self._settled.wait()
        if not HAS_PROC:
            return dict(environment)
        return {**environment, lifeline.NAME: f"{self._token}.{secrets.token_hex(8)}"}

    def watch(self, pid: int, environment: Mapping[str, str]) -> Kin | None:
        """A child was started so. The helper is told of its process group, too."""
        if not HAS_PROC:
            return None
        kin = Kin(self, environment[lifeline.NAME], f"{pid} {lifeline.started(pid)}")
        self._kin.add(kin)
        self._tell(f"+{kin.words}")
        return kin

    async def end(self, kin: Kin) -> None:
        self._kin.discard(kin)
        self._tell(f"-{kin.words}")
        self._to_end.add(kin.tag)
        with trio.CancelScope(shield=True):
            async with self._looking:
                # Whoever was here before us has looked for all who were waiting.
                if kin.tag in self._to_end:
                    tags, self._to_end = self._to_end, set()
                    await trio.to_thread.run_sync(
                        lifeline.end_tagged, tags.__contains__, LOOKS, PATIENCE
                    )

    async def run(self) -> None:
        """Keep a helper from the first child to the end."""
        await self._wanted.wait()
        why_not = None
        while True:
            since = trio.current_time()
            try:
                status = await self._run_helper()
                failure = None if status < 0 else f"the helper exited with code {status}"
            except OSError as error:
                failure = str(error)
            self._settled.set()
            if failure is None:
                logs.write("warn", "reaper_killed", signal=-status)
            elif why_not is None:  # once is enough
                why_not = failure
                logs.write("warn", "no_reaper", reason=why_not)
            if failure is not None or trio.current_time() < since + PAUSE:
                await trio.sleep(PAUSE if failure is None else LONG_PAUSE)

    async def _run_helper(self) -> int:
        if not HAS_PROC:
            raise OSError("there is no /proc to find processes in")
        theirs, ours = os.pipe()
        os.set_blocking(ours, False)
        self._lifeline = ours
        # Before there is a helper: it is to know, even if we are killed while it starts.
        self._tell(f"={self._token}", *(f"+{kin.words}" for kin in self._kin))
        try:
            helper = self._helper = await _start_helper(theirs)
            self._settled.set()
            try:
                return await helper.wait()
            finally:
                self._tell(lifeline.WELL.decode())
                self._let_go()
                await _end_helper(helper)  # noqa: ASYNC102 - shielded and bounded itself
        finally:
            self._let_go()

    def _let_go(self) -> None:
        self._helper = None
        if self._lifeline != -1:
            os.close(self._lifeline)
            self._lifeline = -1

    def _tell(self, *words: str) -> None:
        if self._lifeline == -1:
            return
        try:
            for word in words:
                os.write(self._lifeline, word.encode() + b"\n")
        except BlockingIOError:
            if self._helper is not None:  # somebody has stopped it; the next is told everything
                self._helper.kill()
        except BrokenPipeError:
            pass  # it was killed; so is the next one told


async def _start_helper(stdin: int) -> trio.Process:
    try:
        return await trio.lowlevel.open_process(
            [sys.executable, "-I", "-S", lifeline.__file__],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,  # no tag of who has started us: we may both be killed
            cwd="/",
            start_new_session=True,  # not reached by what a terminal sends to our group
        )
    finally:
        os.close(stdin)


async def _end_helper(helper: trio.Process) -> None:
    with trio.CancelScope(shield=True):
        with trio.move_on_after(GOODBYE):
            await helper.wait()
        if helper.returncode is None:
            helper.kill()
            with trio.move_on_after(GOODBYE):
                await helper.wait()


@asynccontextmanager
async def open_reaper() -> AsyncGenerator[Reaper]:
    """Children are started and ended in this block. The helper begins with the first of them."""
    async with trio.open_nursery() as nursery:
        reaper = Reaper()
        begin_lasting(nursery, "reaper_crashed", reaper.run, name="reaper")
        yield reaper
        nursery.cancel_scope.cancel("no child is left")
