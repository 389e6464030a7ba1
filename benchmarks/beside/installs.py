"""Programs that others wrote, each installed in a folder of its own, where it is kept.

What is wanted is written into the folder once it is all there: who changes that, or deletes the
folder, has it installed anew.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Missing(Exception):
    """Not to be had here; says why."""


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or ["it says nothing"]
        raise Missing(f"{command[0]} has failed: {words[-1]}")
    return done.stdout


def _kept(folder: Path, wanted: str, fill: Callable[[], None]) -> None:
    note = folder / "wanted.txt"
    if note.is_file() and note.read_text("utf-8") == wanted:
        return
    print(f"installing {wanted}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    fill()
    note.write_text(wanted, "utf-8")


class Python:
    """A virtual environment with *wanted*, such as ``fastmcp>=4.1``."""

    def __init__(self, folder: Path, wanted: str) -> None:
        self.folder, self.wanted = folder, wanted
        self.python = str(folder / "bin" / "python")

        def fill() -> None:
            _run(sys.executable, "-m", "venv", folder)
            _run(self.python, "-m", "pip", "install", "--quiet", wanted)

        _kept(folder, wanted, fill)

    def program(self, name: str) -> list[str]:
        return [self.python, str(self.folder / "bin" / name)]

    def version(self, package: str) -> str:
        code = f"import importlib.metadata as m; print(m.version({package!r}))"
        return _run(self.python, "-c", code).strip()


class Npm:
    """A folder with a package of npm, such as ``supergateway@>=4``."""

    def __init__(self, folder: Path, wanted: str) -> None:
        self.folder = folder
        npm, node = shutil.which("npm"), shutil.which("node")
        if npm is None or node is None:
            raise Missing("there is no npm here")
        self.node = node

        def fill() -> None:
            quiet = ("--no-audit", "--no-fund", "--loglevel=error")
            _run(npm, "install", "--prefix", folder, *quiet, wanted)

        _kept(folder, wanted, fill)

    def program(self, name: str) -> list[str]:
        return [self.node, str(self.folder / "node_modules" / ".bin" / name)]

    def version(self, package: str) -> str:
        said = self.folder / "node_modules" / package / "package.json"
        version: str = json.loads(said.read_text("utf-8"))["version"]
        return version


def revision(folder: Path, name: str) -> tuple[Python, str]:
    """Another revision of ours, and its commit."""
    commit = _run("git", "rev-parse", "--short=12", f"{name}^{{commit}}").strip()
    with_it = folder / commit
    sources = with_it.with_suffix(".sources")
    if not sources.is_dir():
        sources.mkdir(parents=True)
        archive = with_it.with_suffix(".tar")
        _run("git", "archive", f"--output={archive}", commit)
        shutil.unpack_archive(archive, sources, filter="data")
        archive.unlink()
    return Python(with_it, str(sources)), commit
