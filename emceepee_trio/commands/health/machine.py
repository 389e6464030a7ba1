"""What we rely on of the machine itself."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from .finding import Finding

FEW_FILES = 4096
"""So many suffice for a few hundred programs and clients."""


def machine(proc: Path = Path("/proc")) -> Iterator[Finding]:
    yield from _processes(proc)
    yield from _files()


def _processes(proc: Path) -> Iterator[Finding]:
    if not (proc / "self" / "stat").exists():
        message = (
            f"there is no {proc}, so programs that leave the group of their server are not found"
        )
        yield Finding("processes", "warning", message, "mount it, or run the daemon under systemd")
    elif not hasattr(os, "pidfd_open"):
        yield Finding("processes", "warning", "this Python knows no pidfd", "take one for Linux")
    else:
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError as error:
            message = f"pidfd_open: {error.strerror}; a program that hides may outlive its server"
            remedy = "allow it (seccomp of a container?), or run the daemon under systemd"
            yield Finding("processes", "warning", message, remedy)
        else:
            release = os.uname().release
            version = ".".join(map(str, sys.version_info[:3]))
            yield Finding("processes", "ok", f"Linux {release}, Python {version}")


def _files() -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FEW_FILES:
        message = f"this process may open {hard} files at most, four for each program"
        remedy = "raise it: LimitNOFILE= of a unit, `ulimit -Hn`, or limits.conf"
        yield Finding("files", "warning", message, remedy)
    else:
        most = "any number of" if hard == resource.RLIM_INFINITY else str(hard)
        yield Finding("files", "ok", f"{most} may be open")
