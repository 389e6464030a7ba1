"""Who listens where the daemon would, and what systemd says of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from ...config import Config, default_path
from ...model.wire import loads
from ..common.options import HOST, default_port
from ..common.remote import NoAnswer, RemoteDaemon, body_of
from ..home.asking import shown
from ..home.entry import unit_path
from ..service.install import Service
from ..service.unit import NAME, SYSTEM, program_in
from .finding import Finding
from .settings import commands

DAEMON, SERVICE = "daemon", "service"
LISTENS = "0A"
"""A state of sockets, in /proc/net/tcp."""


def listening(
    state: Path | None, url: str | None, config: Path | None
) -> tuple[bool, list[Finding]]:
    """Whether a daemon answers us there, and goes by what is in *config* now."""
    port = default_port()
    asked = url or f"http://{HOST}:{port}"
    try:
        daemon = RemoteDaemon.find(asked, state)
        with daemon.request("GET", "/status", patience=5) as response:
            said = loads(body_of(response).decode())
        if response.status != 200 or not isinstance(said, dict) or "sessions" not in said:
            raise daemon.stranger(response)
    except (NoAnswer, ValueError, RecursionError) as error:
        return False, [_silent(str(error), asked, None if url else port)]
    about = f"version {said.get('version')}, pid {said.get('pid')}, at {asked}"
    ours = version("emceepee-trio")
    if said.get("version") != ours:
        remedy = "start it anew, to have it be what is installed"
        return True, [Finding(DAEMON, "warning", f"{about}; this is {ours}", remedy)]
    slow = said.get("slow_steps") or {}
    found = [Finding(DAEMON, "ok", about)]
    if slow.get("longest_ms", 0) >= 1000:
        message = f"all had to wait {slow['count']} times, up to {slow['longest_ms']} ms"
        remedy = "see `slow_step` in its log; unless the machine was asleep, please report it"
        found.append(Finding(DAEMON, "warning", message, remedy))
    again = "`emceepee reload" + (f" --url {url}`" if url else "`")
    return True, [*found, *_goes_by(said.get("configuration"), asked, config, again)]


def _goes_by(said: object, url: str, config: Path | None, again: str) -> Iterator[Finding]:
    """Whether what it has read is what is there."""
    if not isinstance(said, dict) or not _is_here(url):
        return  # an older one, somebody's token, or files of another machine
    asked = (config or default_path()).absolute()
    path = Path(said["path"]) if isinstance(said.get("path"), str) else None
    in_part = said.get("is_in_part")
    goes_by = "may go by part of it" if in_part else "goes by the former"
    remedy = (
        "start it anew, and please report what its log says" if in_part else "correct it, then "
    )
    for problem in said.get("problems") or ():
        message = f"it could not read its configuration again, and {goes_by}: {problem}"
        yield Finding(DAEMON, "broken", message, remedy if in_part else remedy + again)
    if path is None:
        if config is None and asked.exists():
            message = f"it has read no configuration; {shown(asked)} is there now"
            yield Finding(DAEMON, "warning", message, again)
        return
    if path != asked:
        remedy = f"`emceepee doctor --config {shown(path)}` looks at that"
        yield Finding(DAEMON, "note", f"it goes by {shown(path)}, not by {shown(asked)}", remedy)
    with suppress(OSError, ValueError, TypeError):  # what is a pipe, or gone, or no time
        read_at = datetime.fromisoformat(said["read_at"]).timestamp()
        if not said.get("problems") and path.is_file() and path.stat().st_ctime > read_at:
            message = f"{shown(path)} has changed since it was read"
            yield Finding(
                DAEMON, "warning", message, f"`emceepee check {shown(path)}`, then {again}"
            )


def _is_here(url: str) -> bool:
    """Whether its files are ours, too."""
    return url.startswith("unix:") or urlsplit(url).hostname in ("127.0.0.1", "::1", "localhost")


def _silent(why: str, url: str, port: int | None) -> Finding:
    who = None if port is None else listener(port)
    if "wants another token" in why:
        by = f" (pid {who[0]}: {who[1]})" if who else ""
        remedy = "set EMCEEPEE_TOKEN to its token, or name its --state-dir; or stop it"
        return Finding(
            DAEMON, "broken", f"what listens at {url}{by} takes no token of ours", remedy
        )
    if "no daemon answers" in why and who is None:
        return Finding(DAEMON, "note", f"none runs at {url}", "`emceepee serve` starts one")
    by = f"pid {who[0]}: {who[1]}" if who else "somebody else's"
    remedy = "stop it, or have the daemon listen elsewhere: set PORT, or `emceepee serve --bind`"
    return Finding(DAEMON, "broken", f"something else listens at {url} ({by})", remedy)


def listener(port: int, proc: Path = Path("/proc")) -> tuple[int, str] | None:
    """Its pid and command; None if nobody listens there, or nobody that we may look at."""
    inodes = set()
    for table in ("net/tcp", "net/tcp6"):
        with suppress(OSError):
            for line in (proc / table).read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENS and int(words[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{words[9]}]")
    for fd in proc.glob("[0-9]*/fd/*") if inodes else ():
        with suppress(OSError):
            if os.readlink(fd) in inodes:  # noqa: PTH115 - it is no path
                pid = fd.parts[-3]
                words = (proc / pid / "cmdline").read_text(errors="replace").split("\0")
                return int(pid), " ".join(words).strip()[:100]
    return None


def services(config: Config | None, *, is_answering: bool) -> Iterator[Finding]:
    """Of this user, and of the machine."""
    for is_users in (True, False):
        path = unit_path() if is_users else SYSTEM
        try:
            unit = path.read_text("utf-8")
        except (OSError, ValueError):
            continue
        yield from _service(unit, path, config, is_users=is_users, is_answering=is_answering)


def _service(
    unit: str, path: Path, config: Config | None, *, is_users: bool, is_answering: bool
) -> Iterator[Finding]:
    again = "run `emceepee install-service" + (" --user`" if is_users else "` as root")
    journal = f"journalctl{' --user' if is_users else ''} -u {NAME} -n 20"
    program = program_in(unit)
    if not os.access(program, os.X_OK):
        message = f"{shown(path)} starts {program or 'nothing'}, which is not there"
        yield Finding(SERVICE, "broken", message, again)
    if is_users:
        yield from _not_found(unit, config, again)
    if shutil.which("systemctl") is None:
        return
    try:
        said = Service.of(is_users=is_users).ask("is-active", NAME)
    except (OSError, subprocess.TimeoutExpired):
        yield Finding(SERVICE, "warning", "systemctl does not answer", f"see `{journal}`")
        return
    state = said.stdout.strip()
    if not state:
        why = said.stderr.strip().partition("\n")[0]
        remedy = "log in as yourself, not by su; in a container run `emceepee serve` by hand"
        yield Finding(SERVICE, "warning", f"systemd does not run for you here: {why}", remedy)
    elif state == "active" or is_answering:
        yield Finding(SERVICE, "ok", f"{shown(path)} is {state}")
    else:
        start = f"systemctl{' --user' if is_users else ''} restart {NAME}"
        message = f"{shown(path)} is installed, and {state}"
        yield Finding(SERVICE, "broken", message, f"see `{journal}`, then `{start}`")


def _not_found(unit: str, config: Config | None, again: str) -> Iterator[Finding]:
    """What the shell finds, and the service would not."""
    line = re.search(r'(?m)^Environment="?PATH=([^"\n]*)', unit)
    if line is None or config is None:
        return
    path = line[1].replace("%h", str(Path.home())).replace("%%", "%")
    for name, command in commands(config):
        here = shutil.which(command)
        if here is not None and shutil.which(command, path=path) is None:
            message = f"server {name!r}: the PATH of the service lacks {Path(here).parent}"
            yield Finding(SERVICE, "broken", f"{message}, where {command} is", again)
