"""Programs that start without importing: each is a fork of a process that has done so already.

Most of a test with a real daemon was the second of CPU that Python takes to import the SDK, twice.
What :func:`command` starts is a process as ever, with its own pipes, environment and folder; it
takes signals and has an exit code. But a fork runs the program, which is neither its child nor in
its group. Whoever looks at children, groups, memory, limits or the start itself is marked ``cold``,
as is all that is in ``faults``; with ``TESTS_START_COLD`` in the environment everything is.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).parent / "fork_server.py"
NAME = f"emceepee-tests-{os.getpid()}"
"""Of an abstract socket."""

GUARD = 60.0

is_on = False
"""Whether it is for the test that runs now."""


def command(module: str) -> tuple[str, ...]:
    """``python -m`` *module*, by the shortest way there is."""
    if is_on:
        imported = {"emceepee_trio": "emceepee_trio.cli"}.get(module, module)
        return sys.executable, "-I", "-S", str(SCRIPT), NAME, imported
    return sys.executable, "-m", module


@contextmanager
def fork_server() -> Iterator[None]:
    """The process whose forks they are, which imports nothing until it is asked for one."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{NAME}")
        listener.listen()
        number = listener.fileno()
        server = subprocess.Popen(
            [sys.executable, str(SCRIPT), "--serve", str(number)],
            stdin=subprocess.PIPE,
            pass_fds=[number],
        )
    try:
        yield
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(GUARD)
