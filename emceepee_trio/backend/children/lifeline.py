"""Ends every process that carries a tag of ours in its environment; and the helper that does so.

A process hands its environment down to all it starts, through new sessions and past parents that
are gone. So who carries the tag of a child, is of that child. Linux only: it is read from /proc.

As a program, ``python -I -S lifeline.py``, it is told on standard input whose tags and which
process groups there are. When that pipe ends without a word the daemon was killed, and what it had
started is ended. It outlives all signals that it can, and imports nothing but the standard library.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

NAME = "EMCEEPEE_TAG"
"""Of the environment variable: the daemon's part, a dot, the child's part."""
GRACE = 0.3
"""Seconds between TERM and KILL for those whose daemon was killed; their stdin has ended before."""
LOOKS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds before each look that has to find nobody. What was just forked is tagged once it runs."""
PATIENCE = 60.0
"""Seconds to go on while they start others faster than we end them, or cannot be ended."""
WELL = b"."
"""The last word of a daemon that ends by itself."""

Wanted = Callable[[str], bool]


def end_tagged(wanted: Wanted, looks: Sequence[float], patience: float) -> None:
    """Kill whoever carries a wanted tag until as many looks in a row as wanted find nobody."""
    deadline = time.monotonic() + patience
    left = list(looks)
    while left and time.monotonic() < deadline:
        time.sleep(left.pop(0))
        if signal_tagged(wanted, signal.SIGKILL):
            left = list(looks)


def signal_tagged(wanted: Wanted, number: signal.Signals, signalled: Iterable[int] = ()) -> int:
    """Signal their process groups, but for those already *signalled*; says how many were found."""
    found = 0
    groups = {0, os.getpgrp(), *signalled}  # 0: it cannot be named from here
    # The newest first: who forks and exits all the time must not be gone until we come to it.
    for name in reversed(os.listdir("/proc")):  # noqa: PTH208 - pathlib would be a quarter of us
        if name.isdecimal() and _carries(int(name), wanted):
            found += 1
            _signal(int(name), wanted, number, groups)
    return found


def _signal(pid: int, wanted: Wanted, number: signal.Signals, groups: set[int]) -> None:
    """By a handle that stays its own: the number may have become another's since we looked."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # an old kernel, or it is gone
        handle = -1

    def send(number: int) -> None:
        if handle == -1:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)

    try:
        if _carries(pid, wanted):
            group = os.getpgid(pid)
            send(0)
            # It lives, so that group was its own, and has descendants of that child only: none
            # can join a session that it does not come from. A second TERM might be taken for haste.
            if group not in groups:
                groups.add(group)
                os.killpg(group, number)
            elif number == signal.SIGKILL:
                send(number)
    except OSError:  # gone meanwhile, or somebody else's
        pass
    finally:
        if handle != -1:
            os.close(handle)


def _carries(pid: int, wanted: Wanted) -> bool:
    return any(map(wanted, _tags(pid)))


def _tags(pid: int) -> Iterator[str]:
    """None of a process that has ended, or that is not ours to look at."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:  # noqa: PTH123 - as above
            environ = file.readall()
    except OSError:
        return
    start = NAME.encode() + b"="
    for variable in environ.split(b"\0") if start in environ else ():
        if variable.startswith(start):
            yield variable[len(start) :].decode(errors="replace")


def started(pid: int) -> str | None:
    """When, in the kernel's ticks; with it a number names one process. None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - as above
            return file.readall().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return None


# The program


class Told:
    """What the daemon says, a word a line; it may end anywhere."""

    def __init__(self) -> None:
        self.token = ""
        self.groups: set[tuple[int, str]] = set()
        self.is_well = False

    def hear(self, line: bytes) -> None:
        """``=TOKEN``, ``+PID START``, ``-PID START`` or the last word."""
        if line == WELL:
            self.is_well = True
        elif line[:1] == b"=":
            self.token = line[1:].decode()
        else:
            pid, start = line[1:].decode().split()
            change = self.groups.add if line[:1] == b"+" else self.groups.discard
            change((int(pid), start))

    def is_ours(self, tag: str) -> bool:
        return bool(self.token) and tag.startswith(self.token + ".")

    def signal_groups(self, number: signal.Signals) -> list[int]:
        """Those that were there."""
        found = []
        for leader, start in self.groups:
            # A leader that is gone leaves its number to the group; nobody else can have it.
            if started(leader) in (None, start):
                try:
                    os.killpg(leader, number)
                    found.append(leader)
                except OSError:  # gone
                    pass
        return found


def listen(told: Told) -> None:
    beginning = b""
    while chunk := os.read(0, 65536):
        *lines, beginning = (beginning + chunk).split(b"\n")
        for line in lines:
            told.hear(line)


def main() -> None:
    for number in signal.valid_signals():
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):  # it cannot be ignored
            pass
    told = Told()
    listen(told)
    if not told.is_well:
        groups = told.signal_groups(signal.SIGTERM)
        if signal_tagged(told.is_ours, signal.SIGTERM, groups) or groups:
            time.sleep(GRACE)
    told.signal_groups(signal.SIGKILL)
    end_tagged(told.is_ours, LOOKS[:1] if told.is_well else LOOKS, PATIENCE)


if __name__ == "__main__":
    main()
