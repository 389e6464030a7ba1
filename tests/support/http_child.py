"""An HTTP backend in a process of its own, so that it can be killed and started again.

:func:`open_http_child` gives it a port, where it is started and killed as a test likes. Run as a
script it is the server of ``http_server.py``, with a journal of what it is sent, as the raw server
writes one, and with its sessions in a file, which outlive it as long as the file does.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from http_server import HttpServer, Reply, Request, plain
from play import Json, greetings

TRIES = 20
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}


class KeptSessions(set[str]):
    def __init__(self, file: Path) -> None:
        super().__init__(file.read_text("utf-8").splitlines() if file.exists() else ())
        self._file = file

    def add(self, session: str) -> None:
        super().add(session)
        self._write()

    def discard(self, session: object) -> None:
        super().discard(session)
        self._write()

    def _write(self) -> None:
        self._file.write_text("\n".join(sorted(self)), "utf-8")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("journal", type=Path)
    parser.add_argument("sessions", type=Path)
    parser.add_argument("--listens", action="store_true")
    flags = parser.parse_args()

    async def note(request: Request, reply: Reply) -> bool:
        entry = request.message if request.body else {"method": request.verb}
        if request.method == "tools/call":
            known = request.headers.get("mcp-session-id") in server.sessions
            entry = {**entry, "known": known}
        with flags.journal.open("ab", buffering=0) as file:
            file.write(json.dumps(entry).encode() + b"\n")
        return False

    # Of another process the ids are others, too.
    prefix = f"session-of-{os.getpid()}"
    play = plain("handshake")
    known: dict[str, Json] = {"logging/setLevel": {}, "resources/subscribe": {}}
    play.results = {**play.results, **greetings("http", CAPABILITIES), **known}
    server = HttpServer(
        listens=flags.listens, spoil=note, play=play, port=flags.port, prefix=prefix
    )
    server.sessions = KeptSessions(flags.sessions)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        sys.stdout.write("ready\n")
        sys.stdout.flush()


async def free_port() -> int:
    """Nobody listens there, and nobody is given it who does not ask for it by its number."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listener:
        return int(listener.socket.getsockname()[1])


@attrs.define(eq=False)
class HttpChild:
    """A port, and the server that runs there at times."""

    port: int
    folder: Path
    flags: tuple[str, ...] = ()
    child: trio.Process | None = attrs.field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def journal(self) -> Path:
        return self.folder / "http.jsonl"

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    async def start(self) -> None:
        """Returns once it listens; somebody's connection may begin at its port meanwhile."""
        files: list[Any] = [self.port, self.journal, self.sessions]
        command = [sys.executable, __file__, *map(str, files), *self.flags]
        for _ in range(TRIES):
            child = self.child = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
            assert child.stdout is not None
            if await child.stdout.receive_some() == b"ready\n":
                return
            self.child = None
            await child.wait()
            await child.stdout.aclose()
            await trio.sleep(0.5)
        raise AssertionError(f"port {self.port} is taken")

    async def kill(self, *, forget: bool = False) -> None:
        """Suddenly, and with all of its sessions or without."""
        child, self.child = self.child, None
        if child is not None:
            child.kill()
            with trio.CancelScope(shield=True):
                assert await child.wait() == -signal.SIGKILL
                assert child.stdout is not None
                await child.stdout.aclose()
        if forget:
            self.sessions.unlink(missing_ok=True)


@asynccontextmanager
async def open_http_child(
    folder: Path, *flags: str, start: bool = True
) -> AsyncGenerator[HttpChild]:
    it = HttpChild(await free_port(), folder, flags)
    if start:
        await it.start()
    try:
        yield it
    finally:
        with trio.CancelScope(shield=True):
            await it.kill()


if __name__ == "__main__":
    trio.run(main)
