"""What systemd and a service tell each other: sd_notify(3) and sd_listen_fds(3).

Other service managers speak the same.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping

from . import logs

FIRST_FD = 3
PATIENCE = 1.0
"""Seconds that a service manager may take to read what it is told."""


def ready() -> None:
    notify("READY=1")


def reloading() -> None:
    """Followed by :func:`ready`, whatever came of it."""
    notify(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")


def stopping() -> None:
    notify("STOPPING=1")


def notify(state: str) -> None:
    """Tell the service manager about *state*; do nothing if there is none."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(PATIENCE)
            sock.connect(address)
            sock.sendall(state.encode())
    except OSError as error:
        # We can go on without it; it will judge by itself what to do with us.
        logs.write("warn", "notify_failed", state=state.partition("\n")[0], error=str(error))


def passed_sockets(environ: MutableMapping[str, str] = os.environ) -> list[int]:
    """The descriptors of the sockets that we were started with.

    The variables are taken away when they were for us: a child of ours would believe them, too.
    """
    if environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = environ.get("LISTEN_FDS", "")
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"):
        environ.pop(name, None)
    return list(range(FIRST_FD, FIRST_FD + int(count))) if count.isdecimal() else []
