"""What is asked of one contender, one at a time or many at once, by a client that checks little."""

from __future__ import annotations

import contextlib
import json
import re
import selectors
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from http_call import INITIALIZE, Client, connect, free_port, is_whole, read
from instructions import Modern

from .contenders import TEXT, Contender

SAID = TEXT.encode()
_PAUSE = 0.002
"""Seconds between two looks whether somebody listens."""


class Failed(Exception):
    """A contender does not do what is asked of it; says how."""


class Load(Protocol):
    """A session."""

    def greet(self) -> None: ...

    def renew(self) -> None:
        """Before a round: as if nothing had been asked for a while."""

    def ask(self, method: str, **params: Any) -> bytes: ...

    def crowd(self, at: int, count: int, params: dict[str, Any]) -> float:
        """Seconds for *count* calls of a tool, *at* of them under way at any time."""


class Http:
    """Over HTTP: one connection, and as many as are under way at once."""

    def __init__(self, port: int, *, is_modern: bool) -> None:
        self.client = Modern(port) if is_modern else Client(port)

    def greet(self) -> None:
        self.client.open()

    def renew(self) -> None:
        self.client.renew()

    def ask(self, method: str, **params: Any) -> bytes:
        return self.client.ask(method, **params)

    def crowd(self, at: int, count: int, params: dict[str, Any]) -> float:
        # As there are no two ids alike, nobody has a reason to answer twice with one call.
        numbers = range(1_000_000, 1_000_000 + count)
        asked = ({"id": number, "method": "tools/call", "params": params} for number in numbers)
        left = [self.client.request(message) for message in asked]
        connections = [connect(self.client.port) for _ in range(at)]
        answers = dict.fromkeys(connections, b"")
        with selectors.DefaultSelector() as ready:
            started = time.perf_counter()
            for connection in connections:
                connection.sendall(left.pop())
                ready.register(connection, selectors.EVENT_READ, connection)
            while answers:
                for key, _ in ready.select():
                    connection = key.data
                    answers[connection] += read(connection)
                    if not is_whole(answers[connection]):
                        continue
                    check(answers[connection])
                    answers[connection] = b""
                    if left:
                        connection.sendall(left.pop())
                    else:
                        ready.unregister(connection)
                        del answers[connection]
            took = time.perf_counter() - started
        for connection in connections:
            connection.close()
        return took


class Pipes:
    """Over standard input and output."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.input, self.output = process.stdin, process.stdout
        self.last = 0

    def greet(self) -> None:
        self.ask("initialize", **INITIALIZE)
        self._write({"method": "notifications/initialized"})

    def renew(self) -> None:
        pass

    def ask(self, method: str, **params: Any) -> bytes:
        self._request(method, params)
        return self._answer()

    def crowd(self, at: int, count: int, params: dict[str, Any]) -> float:
        started = time.perf_counter()
        for number in range(count):
            if number >= at:
                check(self._answer())
            self._request("tools/call", params)
        for _ in range(at):
            check(self._answer())
        return time.perf_counter() - started

    def _request(self, method: str, params: dict[str, Any]) -> None:
        self.last += 1
        self._write({"id": self.last, "method": method, "params": params})

    def _write(self, message: dict[str, Any]) -> None:
        self.input.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.input.flush()

    def _answer(self) -> bytes:
        while line := self.output.readline():
            if b'"method"' not in line or "method" not in json.loads(line):
                return line
        raise Failed("its output has ended")


def check(answer: bytes) -> None:
    if SAID not in answer:
        raise Failed(f"no echo: {answer[:300]!r}")


class Running:
    """A contender that runs, and a session of it that has been greeted."""

    def __init__(self, contender: Contender, process: subprocess.Popen[bytes], port: int) -> None:
        self.contender, self.process, self.port = contender, process, port
        self.load = self.session()

    def session(self) -> Load:
        """Another session, if there can be several."""
        load: Load
        if self.contender.way == "stdio to stdio":
            load = Pipes(self.process)
        else:
            load = Http(self.port, is_modern=self.contender.is_modern)
        load.greet()
        return load

    def call(self) -> float:
        started = time.perf_counter()
        answer = self.load.ask("tools/call", **self.contender.call)
        took = time.perf_counter() - started
        check(answer)
        return took

    def processor_time(self) -> float:
        """Seconds that the process has computed, in all its threads, without its children."""
        # What clock_getcpuclockid() makes of a process number, which Python does not offer.
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def resident(self) -> int:
        """Kilobytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1])


@contextlib.contextmanager
def running(contender: Contender, *before: str) -> Iterator[Running]:
    """It, started, perhaps by a command *before* its own, and greeted; then ended."""
    port, pipe, none = free_port(), subprocess.PIPE, subprocess.DEVNULL
    with_pipes = contender.way == "stdio to stdio"
    make = contender.counted if before else contender.command
    assert make is not None
    process = subprocess.Popen(
        [*before, *make(port)],
        stdin=pipe if with_pipes else none,
        stdout=pipe if with_pipes else none,
        stderr=none,
        cwd="/",  # where we are, what Python imports of ours would be this revision, whatever it is
    )
    with process:
        try:
            while not with_pipes and not _listens(port):
                if (code := process.poll()) is not None:
                    raise Failed(f"it has ended with {code}")
                time.sleep(_PAUSE)
            yield Running(contender, process, port)
        finally:
            process.terminate()
            if process.stdin is not None:
                process.stdin.close()
            process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
