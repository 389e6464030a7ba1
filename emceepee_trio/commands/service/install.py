"""``emceepee install-service``: the daemon as a service, for one user or for a machine."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from ...config import default_path
from ...model.inherited import CERTIFICATES, PROXIES, REGISTRIES
from ..common.options import HOST, PORT, Usage, default_port
from ..common.output import complain, say
from ..common.terminal import working
from ..home.asking import agreed, shown
from ..home.entry import program, unit_path
from .unit import NAME, SYSTEM, Unit

PATIENCE = 60.0
"""Seconds that systemctl may take; it waits until the daemon says that it is ready."""
SYSTEM_CONFIG = Path("/etc/emceepee/config.json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", action="store_true", help="for you alone; else for the machine")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--print", action="store_true", help="print the unit, and do nothing")
    other.add_argument("--remove", action="store_true", help="stop it, and remove the unit")
    parser.add_argument("--yes", "-y", action="store_true", help="do it without asking")


@attrs.frozen
class Service:
    """Where its unit is, and who is asked about it."""

    path: Path
    systemctl: tuple[str, ...]

    @classmethod
    def of(cls, *, is_users: bool) -> Service:
        words = ("systemctl", "--user") if is_users else ("systemctl",)
        return cls(unit_path() if is_users else SYSTEM, words)

    def steps(self, *, is_new: bool) -> list[tuple[str, ...]]:
        steps: list[tuple[str, ...]] = [("daemon-reload",), ("enable", "--now", NAME)]
        # One that runs goes on as it was started.
        return steps if is_new else [*steps, ("restart", NAME)]

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """
        Raises:
            OSError: there is nobody to ask.
            subprocess.TimeoutExpired: and nobody answers.
        """
        return subprocess.run(
            [*self.systemctl, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )


def run(options: argparse.Namespace) -> int:
    if not (options.user or options.print) and os.geteuid() != 0:
        raise Usage("a service of the machine is root's to install; --user makes one of yours")
    service = Service.of(is_users=options.user)
    if options.remove:
        return _remove(options, service)
    unit = str(_unit(options))
    if options.print:
        say(unit.rstrip("\n"))
        return 0
    before = _read(service.path)
    if before == unit:
        say(f"{shown(service.path)} is as it should be")
    else:
        if not _is_ours(before) and not agreed(options, f"{_what(service.path)} Replace it?"):
            return 1
        try:
            _write(service.path, unit)
        except OSError as error:
            complain(f"emceepee install-service: {service.path}: {error.strerror}")
            return 1
        say(f"written: {shown(service.path)}")
        if before and not _is_ours(before):
            say(f"what it was: {shown(_beside(service.path))}")
    status = _do(service, service.steps(is_new=before is None))
    _tell_lacking(options)
    if status == 0:
        say("`emceepee status` asks it; `emceepee connect` has clients share it.")
        if options.user:
            say("`loginctl enable-linger` keeps it running while you are not logged in.")
    return status


def _unit(options: argparse.Namespace) -> Unit:
    words = program()
    if options.user:
        port = default_port()
        return Unit.of_user(words, () if port == PORT else ("--bind", f"{HOST}:{port}"), os.environ)
    real = Path(words[0]).resolve()
    hidden = next((home for home in ("/home", "/root") if real.is_relative_to(home)), None)
    if hidden is not None and not options.print:
        raise Usage(
            f"a service of the machine sees nothing below {hidden}, where {real} is; install "
            "emceepee elsewhere, as /opt/emceepee, or take --user"
        )
    return Unit.of_machine(words, ("--config", str(SYSTEM_CONFIG)))


def _do(service: Service, steps: Sequence[Sequence[str]]) -> int:
    """Each of them, until one fails; what is left to do is said, where it is somebody else's."""
    if shutil.which(service.systemctl[0]) is None:
        say("There is no systemctl here. Where there is one:")
        for step in steps:
            say(f"  {' '.join((*service.systemctl, *step))}")
        return 0
    for i, step in enumerate(steps):
        words = " ".join((*service.systemctl, *step))
        try:
            with working(words):
                done = service.ask(*step)
        except (OSError, subprocess.TimeoutExpired) as error:
            is_missing = isinstance(error, OSError)
            why, status = str(error) if is_missing else f"no answer within {PATIENCE:.0f} s", 1
        else:
            why, status = done.stderr.strip() or f"status {done.returncode}", done.returncode
        if status:
            for line in why.split("\n"):
                complain(f"emceepee install-service: {words}: {line}")
            complain(f"emceepee install-service: {_advice(service, why)}")
            for left in steps[i:]:
                say(f"  {' '.join((*service.systemctl, *left))}")
            return 1
        say(f"done: {words}")
    return 0


def _advice(service: Service, why: str) -> str:
    journal = (
        "journalctl " + ("--user " if "--user" in service.systemctl else "") + "-u emceepee -n 20"
    )
    if re.search(r"bus|systemd as init|[Nn]o medium", why):
        return (
            "systemd does not run for you here; once it does (a login, not su or a container), run"
        )
    return f"see `{journal}`; then run"


def _tell_lacking(options: argparse.Namespace) -> None:
    config = default_path() if options.user else SYSTEM_CONFIG
    if not config.exists():
        say(f"It has no servers yet: {shown(config)} is not there; `emceepee import` makes it.")
    if missing := _not_known(config):
        file = "~/.config/emceepee/environment" if options.user else "/etc/emceepee/environment"
        say(f"It knows no variables of your shell. Put these into {file}, as NAME=VALUE:")
        say(f"  {', '.join(missing)}")


def _not_known(config: Path, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Variables that are set here and that it, or its servers, would miss."""
    from ...model.allowed import AllowedNames

    text = _read(config) or ""
    named = set(re.findall(r"\$\{(?:env:)?([A-Za-z_]\w*)", text)) - {"HOME", "PATH", "USER"}
    network = AllowedNames.of((*PROXIES, *CERTIFICATES, *REGISTRIES))
    return sorted(name for name in environ if name in named or name.upper() in network)


def _remove(options: argparse.Namespace, service: Service) -> int:
    before = _read(service.path)
    if before is None:
        say(f"there is no {shown(service.path)}")
        return 0
    if not _is_ours(before) and not agreed(options, f"{_what(service.path)} Remove it?"):
        return 1
    status = _do(service, [("disable", "--now", NAME)])
    try:
        service.path.unlink()
    except OSError as error:
        complain(f"emceepee install-service: {service.path}: {error.strerror}")
        return 1
    say(f"removed: {shown(service.path)}")
    return status or _do(service, [("daemon-reload",)])


def _what(path: Path) -> str:
    return f"{shown(path)} is not of this command."


def _is_ours(text: str | None) -> bool:
    return text is None or "by `emceepee install-service" in text.partition("\n")[0]


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.before")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = _read(path)
    if before is not None and not _is_ours(before):
        _beside(path).write_text(before, "utf-8")
    new = path.with_name(f".{path.name}.new")
    new.write_text(text, "utf-8")
    new.replace(path)
