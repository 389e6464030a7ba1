"""What some tests need and Python does not bring: npm packages, a Node to run them, a browser.

Without it they are skipped, saying what is missing; where CI is set they fail instead. Packages
are installed into a folder of the tests', from the exact versions that are named here, once for all
processes that run tests.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, flock
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import attrs
import pytest

Json = dict[str, Any]
Made = TypeVar("Made")

CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SDK_1 = "@modelcontextprotocol/sdk@1.32.2"
SDK_2 = "@modelcontextprotocol/client@2.4.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.327"
CODEX = "@openai/codex@0.169.0"
GEMINI = "@google/gemini-cli@0.61.0"
MCPORTER = "mcporter@0.9.0"
SERVERS = (
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-basic-vanillajs@2.0.3",
    "@modelcontextprotocol/server-map@2.0.3",
    "@modelcontextprotocol/server-budget-allocator@2.0.3",
)
TIME = "mcp-server-time==2026.10.19"
FASTMCP = "fastmcp-slim[client]==4.1.2"
"""fastmcp without its server."""
NODE_SINCE = (22, 19)
"""What the packages ask for."""
NODE = "22.23.3"
"""Brought by npm where there is no such Node."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

IN_CI = bool(os.environ.get("CI"))

GUARD = 300.0
"""Seconds after which a program hangs; a busy machine and a slow network need a part of it."""


def lacking(what: str) -> NoReturn:
    if IN_CI:
        pytest.fail(f"{what}, and here these tests must run")
    pytest.skip(what)


def find(*names: str) -> str:
    """The path of the first of these programs that is here."""
    for name in names:
        if (path := shutil.which(name)) is not None:
            return path
    lacking(f"there is no {names[0]} here")


@attrs.frozen
class Npm:
    """Packages that are installed in a folder, and the Node to run them with."""

    folder: Path
    node: str

    def environment(self) -> dict[str, str]:
        """Nothing of the user's is read, and nothing written, but in the folder."""
        here = str(self.folder)
        path = os.pathsep.join([str(Path(self.node).parent), os.environ["PATH"]])
        return {**os.environ, "PATH": path, "HOME": here, "TMPDIR": here, "NO_COLOR": "1"}

    def program(self, name: str) -> list[str]:
        """What starts a program that one of the packages brings."""
        return [self.node, str(self.folder / "node_modules" / ".bin" / name)]

    def run(
        self, command: list[str], *, check: bool = True, **more: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            capture_output=True,
            cwd=self.folder,
            env=self.environment() | more,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=GUARD,
            check=False,
        )
        assert not check or done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done

    def drive(self, script: str, *args: str) -> Json:
        """What a script of ours in the folder reports."""
        report: Json = json.loads(self.run([self.node, script, *args]).stdout)
        return report


def inspect(npm: Npm, url: str, era: str, *options: str) -> Json:
    """What the Inspector gets."""
    command = [*npm.program("inspector"), "--cli", "--server-url", url]
    chosen = ("--transport", "http", "--protocol-era", era, "--format", "json")
    result: Json = json.loads(npm.run([*command, *chosen, *options]).stdout)["result"]
    return result


@contextmanager
def shared(
    factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], Made]
) -> Iterator[Made]:
    """What is made of a folder that all processes that run tests have in common.

    They come to *fill* it one at a time, which does nothing if an earlier one has done it. The
    last to leave removes it.
    """
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / name
    with (base / f"{name}.turn").open("w") as turn, (base / f"{name}.users").open("w") as users:
        flock(turn, LOCK_EX)
        flock(users, LOCK_SH)
        folder.mkdir(exist_ok=True)
        made = fill(folder)
        flock(turn, LOCK_UN)
        yield made
        flock(turn, LOCK_EX)
        try:
            flock(users, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return  # somebody is there
        shutil.rmtree(folder)


def install(folder: Path, *packages: str) -> Npm:
    """Install packages, and Node if that of the system is too old."""
    npm = find("npm")
    node = shutil.which("node")
    if node is None or _version(node) < NODE_SINCE:
        bringer = f"node-{sys.platform}-{_architecture()}"
        packages = (*packages, f"{bringer}@{NODE}")
        node = str(folder / "node_modules" / bringer / "bin" / "node")
    done = folder / "done"
    if done.exists():
        return Npm(folder, node)
    options = (
        "--no-save",
        "--no-package-lock",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
    )
    _install(folder, packages, [npm, "install", "--prefix", str(folder), *options])
    done.touch()
    return Npm(folder, node)


def install_python(folder: Path, *packages: str) -> str:
    """A Python that has these packages, beside what that of the tests has."""
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (site,) = folder.glob("lib/*/site-packages")
    ours = [path for path in sys.path if "site-packages" in path]
    (site / "ours.pth").write_text("\n".join(ours), "utf-8")
    quietly = ("--disable-pip-version-check", "--no-compile")
    _install(folder, packages, [str(python), "-m", "pip", "install", *quietly])
    return str(python)


def _install(folder: Path, packages: tuple[str, ...], command: list[str]) -> None:
    what = ", ".join(packages)
    try:
        done = subprocess.run(
            [*command, *packages],
            capture_output=True,
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=GUARD,
            check=False,
        )
    except subprocess.TimeoutExpired:
        lacking(f"{what}: not installed in time")
    if done.returncode != 0:
        lacking(f"{what}: cannot be installed:\n{done.stderr}")


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(map(int, re.findall(r"\d+", said)))


def _architecture() -> str:
    """As Node names it."""
    names: Mapping[str, str] = {"x86_64": "x64", "aarch64": "arm64"}
    return names.get(platform.machine(), platform.machine())
