"""A real ``systemd --user`` of nobody, in namespaces of its own, that leaves nothing behind.

It has processes, mounts and control groups to itself; the network and all other files it has
together with us. When its first process ends the kernel ends all the others. Needs root, and a file
system of control groups that may be written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

SYSTEMD = "/lib/systemd/systemd"
GUARD = 60.0
"""Seconds."""

SCRIPT = """
echo $$ > "$GROUP/cgroup.procs"
exec unshare --mount --pid --fork --mount-proc --cgroup --propagation private /bin/sh -ec '
    mount -t tmpfs none /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
    mount -t tmpfs none /run/systemd
    mkdir /run/systemd/system  # as where systemd is the first process
    "$0" --user &
    read end || true
' "$0"
"""


class NoSystemd(Exception):
    """There is no way to have one here."""


@attrs.frozen
class UserSystemd:
    _enter: tuple[str, ...]
    _environment: Mapping[str, str]

    def run(self, *words: str, expected: int = 0) -> str:
        """What a program says that the user starts, whose processes have numbers of their own."""
        done = subprocess.run(
            [*self._enter, *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=GUARD,
            check=False,
        )
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout


@contextmanager
def user_systemd(folder: Path, variables: Mapping[str, str]) -> Iterator[UserSystemd]:
    """It has those *variables*, and so has what it starts.

    Raises:
        NoSystemd: it cannot be had here, and why.
    """
    log = folder / "systemd.log"
    # Sockets are made in a folder of its own, whose name has to be short.
    with _control_group() as group, TemporaryDirectory() as runtime, log.open("wb") as file:
        environment = {**os.environ, **variables, "XDG_RUNTIME_DIR": runtime}
        environment |= {"GROUP": str(group), "SYSTEMD_LOG_TARGET": "console"}
        environment.pop("DBUS_SESSION_BUS_ADDRESS", None)
        with subprocess.Popen(
            ["/bin/sh", "-ec", SCRIPT, SYSTEMD],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
        ) as process:
            try:
                while not Path(runtime, "systemd", "private").exists():
                    if process.poll() is not None:
                        raise NoSystemd(log.read_text().strip())
                    time.sleep(0.02)  # nothing tells when it is there
                children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
                first = children.read_text().split()[0]
                enter = ("nsenter", "--target", first, "--mount", "--pid", "--cgroup", "--")
                yield UserSystemd(enter, environment)
            finally:
                process.communicate(timeout=GUARD)  # its input ends, and so does its first process


@contextmanager
def _control_group() -> Iterator[Path]:
    group = _control_groups() / f"emceepee-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoSystemd(f"no control group of its own: {error.strerror}") from None
    try:
        yield group
    finally:
        for each in sorted(group.rglob("*/"), reverse=True):
            each.rmdir()
        group.rmdir()


def _control_groups() -> Path:
    wanted = (SYSTEMD, "systemctl", "unshare", "nsenter")
    if missing := [each for each in wanted if shutil.which(each) is None]:
        raise NoSystemd(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise NoSystemd("namespaces are root's to make")
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    found = [Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"]
    if not found:
        raise NoSystemd("no control groups of version 2")
    return found[0]
