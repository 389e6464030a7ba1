"""Configuration entries of backends to test with, and the journal that one of them writes.

``demo()`` is the demo backend, ``raw(*flags)`` the server of ``raw_server.py``, whose faults the
flags choose. Nothing here starts a process.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import trio

import warm

HERE = Path(__file__).parent


def demo() -> dict[str, Any]:
    """The demo backend, as an entry of a configuration."""
    command, *args = warm.command("emceepee_trio.demo_backend")
    return {"command": command, "args": args}


def raw(*flags: str | float | os.PathLike[str]) -> dict[str, Any]:
    """The raw server, as an entry of a configuration: ``raw("--tools", 300)``."""
    script = HERE / "raw_server.py"
    return {"command": sys.executable, "args": [str(script), *map(str, flags)]}


def app() -> dict[str, Any]:
    """The server with something to show, of ``app_server.py``."""
    return {"command": sys.executable, "args": ["-S", str(HERE / "app_server.py")]}


async def until(seen: Callable[[], object]) -> None:
    """Wait until something can be seen that another process does, such as to a file.

    Looks again every few milliseconds: no event crosses from that process to ours. Waits for ever;
    the guard around the test is the limit.
    """
    while not seen():  # noqa: ASYNC110 - see above
        await trio.sleep(0.01)


@attrs.frozen
class Journal:
    """What reached a raw server that was started with ``*journal.flags``."""

    path: Path

    @property
    def flags(self) -> tuple[str, str]:
        return "--journal", str(self.path)

    def entries(self) -> list[dict[str, Any]]:
        """Everything so far, oldest first: messages, and the server's own remarks.

        The remarks are ``{"started": pid}``, ``{"marker": text, "id": call}``,
        ``{"unparsed": line}`` and ``{"eof": True}``.
        """
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        complete, _, _ = text.rpartition("\n")
        return [json.loads(line) for line in complete.splitlines()]

    def of(self, method: str) -> list[dict[str, Any]]:
        """The requests and notifications with this method."""
        return [entry for entry in self.entries() if entry.get("method") == method]

    async def wait_for(
        self, wanted: Callable[[dict[str, Any]], object], count: int = 1
    ) -> dict[str, Any]:
        """The ``count``-th entry that is wanted, once it is there."""
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            found[:] = filter(wanted, self.entries())
            return len(found) >= count

        await until(enough)
        return found[count - 1]

    async def wait_for_method(self, method: str, count: int = 1) -> dict[str, Any]:
        return await self.wait_for(lambda entry: entry.get("method") == method, count)

    async def wait_for_marker(self, marker: str, count: int = 1) -> dict[str, Any]:
        return await self.wait_for(lambda entry: entry.get("marker") == marker, count)
