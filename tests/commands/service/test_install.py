"""The unit, and what systemctl is asked; a program of that name writes it down."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from at_home import AtHome
from emceepee_trio.commands.service.unit import USUAL_PATH, Unit, program_in

pytestmark = pytest.mark.once

PACKAGING = Path(__file__).parents[3] / "packaging"

STUB = """\
#!/bin/sh
echo "$*" >> {log}
case "$*" in {failing}) echo "Failed to connect to bus: No medium found" >&2; exit 1;; esac
"""


@pytest.fixture
def at_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> AtHome:
    return AtHome.of(tmp_path, capsys, monkeypatch)


def systemctl(at_home: AtHome, failing: str = "never") -> Path:
    """What is written down."""
    folder = at_home.home.parent / "bin"
    folder.mkdir(exist_ok=True)
    log = folder / "asked"
    program = folder / "systemctl"
    program.write_text(STUB.format(log=log, failing=failing))
    program.chmod(0o755)
    at_home.set({"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})
    return log


def unit_of(at_home: AtHome) -> Path:
    return at_home.home / ".config/systemd/user/emceepee.service"


def test_what_is_packaged_is_what_is_installed() -> None:
    where = "see docs/howto/service.rst."
    about = f"For one user: {where} The token is in ~/.local/state/emceepee/token."
    user = Unit(True, about, "%h/.local/bin/emceepee serve", {"PATH": ":".join(USUAL_PATH)})
    assert str(user) == (PACKAGING / "emceepee.service").read_text()

    about = (
        f"For a whole machine: {where} Install it as /etc/systemd/system/emceepee.service.\n"
        "# The token is in /var/lib/emceepee/token."
    )
    program = ("/usr/local/bin/emceepee",)
    machine = Unit.of_machine(program, ("--config", "/etc/emceepee/config.json"))
    said = str(machine).replace(machine.about, about)
    assert said == (PACKAGING / "emceepee.system.service").read_text()


def test_it_is_written_and_started(at_home: AtHome) -> None:
    log = systemctl(at_home)
    ran = at_home.run("install-service", "--user")
    assert (ran.status, ran.err) == (0, "")
    assert log.read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable --now emceepee.service",
    ]
    unit = unit_of(at_home).read_text()
    (path,) = (line for line in unit.splitlines() if line.startswith("Environment=PATH="))
    assert path.startswith(f"Environment=PATH={log.parent}:")
    assert path.endswith(":%h/.volta/bin:%h/bin")
    assert " serve --bind 127.0.0.1:1\n" in unit
    assert f"XDG_STATE_HOME={at_home.state}" in unit
    assert "emceepee connect" in ran.out


def test_one_that_runs_is_started_anew_and_nothing_is_asked_for_it(at_home: AtHome) -> None:
    log = systemctl(at_home)
    at_home.run("install-service", "--user")
    at_home.set({"PATH": f"/opt/new/bin:{os.environ['PATH']}"})
    log.unlink()
    assert at_home.run("install-service", "--user").status == 0
    assert log.read_text().splitlines()[-1] == "--user restart emceepee.service"
    assert "=/opt/new/bin:" in unit_of(at_home).read_text().replace("PATH=", "=")


def test_a_unit_that_somebody_else_wrote_is_not_replaced_unasked(at_home: AtHome) -> None:
    log = systemctl(at_home)
    unit_of(at_home).parent.mkdir(parents=True)
    unit_of(at_home).write_text("[Service]\nExecStart=/mine\n")
    ran = at_home.run("install-service", "--user")
    assert ran.status == 1
    assert unit_of(at_home).read_text() == "[Service]\nExecStart=/mine\n"
    assert not log.exists()

    assert at_home.run("install-service", "--user", "--yes").status == 0
    (before,) = unit_of(at_home).parent.glob("*.before")
    assert before.read_text() == "[Service]\nExecStart=/mine\n"


def test_where_no_systemd_is_it_says_what_to_run(at_home: AtHome) -> None:
    at_home.set({"PATH": str(at_home.home)})
    ran = at_home.run("install-service", "--user")
    assert ran.status == 0
    assert "There is no systemctl here" in ran.out
    assert "systemctl --user enable --now emceepee.service" in ran.out


def test_where_systemd_does_not_answer_it_says_what_is_left(at_home: AtHome) -> None:
    systemctl(at_home, failing="*enable*")
    at_home.set({"HTTPS_PROXY": "http://proxy"})
    ran = at_home.run("install-service", "--user")
    assert ran.status == 1
    assert "Failed to connect to bus" in ran.err
    assert "HTTPS_PROXY" in ran.out
    assert "systemd does not run for you here" in ran.err
    assert "  systemctl --user enable --now emceepee.service\n" in ran.out
    assert "  systemctl --user daemon-reload\n" not in ran.out


def test_it_goes_as_it_came(at_home: AtHome) -> None:
    log = systemctl(at_home)
    at_home.run("install-service", "--user")
    log.unlink()
    ran = at_home.run("install-service", "--user", "--remove")
    assert ran.status == 0
    assert not unit_of(at_home).exists()
    assert log.read_text().splitlines() == [
        "--user disable --now emceepee.service",
        "--user daemon-reload",
    ]
    assert "there is no" in at_home.run("install-service", "--user", "--remove").out


def test_it_says_which_variables_it_will_miss(at_home: AtHome) -> None:
    systemctl(at_home)
    at_home.config.parent.mkdir(parents=True)
    at_home.config.write_text(
        '{"mcpServers": {"t": {"url": "https://t", "headers": {"A": "${TICKETS_TOKEN}"}}}}'
    )
    at_home.set({"TICKETS_TOKEN": "s3cret", "HTTPS_PROXY": "http://proxy"})
    ran = at_home.run("install-service", "--user")
    # Beside what the tests themselves were started with.
    assert re.search(r"\bHTTPS_PROXY, (.*, )?TICKETS_TOKEN\b", ran.out)
    assert "s3cret" not in ran.out + unit_of(at_home).read_text()


def test_printing_it_does_nothing(at_home: AtHome) -> None:
    log = systemctl(at_home)
    ran = at_home.run("install-service", "--print")
    assert ran.status == 0
    assert "DynamicUser=yes" in ran.out
    assert not log.exists()
    assert list(at_home.home.iterdir()) == []


def test_signs_that_mean_something_to_systemd_are_said_as_they_are() -> None:
    unit = Unit.of_user(("/opt/100%/a b",), (), {"PATH": "/x y:/50%:rel:", "XDG_STATE_HOME": "/s"})
    assert 'ExecStart="/opt/100%%/a b" serve\n' in str(unit)
    assert '\nEnvironment="PATH=/x y:/50%%:%h/.local/bin:' in str(unit)


ODD = """50% of "a" b's; $HOME \\n
[Service]
ExecStartPre=/bin/false \t#é\u202e"""
"""A name of a folder that would be settings of its own, if it stood there as it is."""


def test_no_name_is_more_than_a_name() -> None:
    bytes_ = os.fsdecode(b"/not-utf-8-\xff")
    said = str(Unit.of_user((f"/{ODD}/x",), (), {"PATH": f"/{ODD}", "XDG_STATE_HOME": bytes_}))
    plain = str(Unit.of_user(("/x",), (), {"PATH": "/y", "XDG_STATE_HOME": "/z"}))
    assert program_in(said) == f"/{ODD}/x"
    assert program_in(plain) == "/x"
    starts = [[line.partition("=")[0] for line in unit.split("\n")] for unit in (said, plain)]
    assert starts[0] == starts[1]
    assert "/not-utf-8-\\xff" in said
    assert said.encode()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_takes_a_program_whatever_its_folder_is_called(at_home: AtHome) -> None:
    folder = at_home.home / ODD.replace("/", "+")
    folder.mkdir()
    program = folder / "emceepee"
    program.symlink_to("/bin/true")
    path = at_home.home / "emceepee.service"
    at_home.set({"XDG_RUNTIME_DIR": str(at_home.home)})
    verify = ("systemd-analyze", "--user", "verify", "--man=no", str(path))
    path.write_text(str(Unit.of_user((str(program),), (), {"PATH": str(folder)})))
    told = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert [line for line in told.stderr.splitlines() if path.name in line] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("arguments", [(), ("--user",)])
def test_systemd_has_nothing_to_complain_of(at_home: AtHome, arguments: tuple[str, ...]) -> None:
    path = at_home.home / "emceepee.service"
    path.write_text(at_home.run("install-service", "--print", *arguments).out)
    at_home.set({"XDG_RUNTIME_DIR": str(at_home.home)})
    verify = ("systemd-analyze", *arguments, "verify", "--man=no", str(path))
    told = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert [line for line in told.stderr.splitlines() if path.name in line] == []
