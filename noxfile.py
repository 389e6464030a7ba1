"""What is checked, and how. A bare ``nox`` is what CI runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2026.10"
# A Python that is not here is said and skipped, also where CI is set.
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
# Thousands of programs are started: where nothing compiled is kept, each compiles what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Nine environments are made: where there is a uv, in a fraction of the time.
nox.options.default_venv_backend = "uv|virtualenv"

PROJECT = nox.project.load_toml("pyproject.toml")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = sorted({*nox.project.python_versions(PROJECT), HERE}, key=lambda v: int(v[2:]))

# A bare --select=ASYNC asks for everything, also for what is off unless asked for.
NOT_ASYNC = (
    "ASYNC106",  # off by default: a matter of taste
    "ASYNC114",  # wants a list of every function that is started, kept by hand
    "ASYNC124",  # a handler is async because its caller awaits it, not because it does
    "ASYNC9",  # off by default: checkpoints everywhere; where we decide there must be none
)

# One more than there are processors: tests wait for programs as well.
WORKERS = str((os.cpu_count() or 1) + 1)

SOURCES = ("emceepee_trio", "tests", "benchmarks", "docs")


def show_pyenv() -> None:
    """Let nox find the Pythons that pyenv has installed and not activated.

    Their ``python3.x`` on PATH are shims that fail; the real ones go behind everything else.
    """
    if (pyenv := shutil.which("pyenv")) is None:
        return
    root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout
    installed = Path(root.strip(), "versions")
    folders = [str(path) for version in PYTHONS for path in installed.glob(f"{version}.*/bin")]
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *folders])


show_pyenv()


def group(name: str) -> tuple[str, ...]:
    return nox.project.dependency_groups(PROJECT, name)


def pytest(session: nox.Session, *args: str) -> None:
    session.install(".", *group("tests"))
    session.run("pytest", *args)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Everything but races, faults and conformance, on every Python that is here.

    Clients that others wrote see no difference between Pythons: those of tests/foreign see one.
    Nor do tests of the tree, or of what has an interpreter of its own, which are marked ``once``.
    """
    elsewhere, more = ["races", "faults", "conformance"], list(session.posargs)
    if session.python != HERE:
        elsewhere += ["foreign", "once"]
        more.append("--hypothesis-profile=few")
    # Who is done before the others takes some of theirs.
    spread = ("-n", WORKERS, "--dist", "worksteal")
    pytest(session, *spread, "-m", f"not ({' or '.join(elsewhere)})", *more)


@nox.session
def races(session: nox.Session) -> None:
    """The hypothesis state machines; with ``-- --long`` every property test too, for longer."""
    args = list(session.posargs)
    if "--long" in args:
        args.remove("--long")
        pytest(
            session, "-n", "auto", "-m", "races or hypothesis", "--hypothesis-profile=long", *args
        )
    else:
        pytest(session, "-n", "auto", "-m", "races", *(args or ["tests/races"]))


@nox.session
def faults(session: nox.Session) -> None:
    """Real processes killed, stalled and lied to."""
    pytest(session, "-n", "auto", "-m", "faults", *(session.posargs or ["tests/faults"]))


@nox.session
def conformance(session: nox.Session) -> None:
    """The protocol's own conformance suite against our HTTP endpoint."""
    if shutil.which("npm") is None and not os.environ.get("CI"):
        session.skip("there is no npm here to install the suite with")
    pytest(session, "-m", "conformance", *(session.posargs or ["tests/conformance"]))


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, and those of trio's rules that only flake8-async knows."""
    session.install(*group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    files = [path for folder in SOURCES for path in Path(folder).rglob("*.py")]
    # It takes its time, and has nothing to say where nothing is asynchronous.
    files = [path for path in files if re.search(r"\b(async|trio)\b", path.read_text("utf-8"))]
    session.log(f"flake8 of {len(files)} files")
    session.run(
        "flake8",
        "--isolated",
        "--select=ASYNC",
        f"--extend-ignore={','.join(NOT_ASYNC)}",
        *map(str, files),
        log=False,
    )


@nox.session
def typing(session: nox.Session) -> None:
    """mypy --strict, everywhere."""
    session.install(".", *group("typing"))
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation; a warning is an error."""
    session.install(".", *group("docs"))
    out = session.cache_dir / "docs"
    session.run("sphinx-build", "-q", "-W", "-n", "--keep-going", "-b", "html", "docs", str(out))
    session.log(f"see {out / 'index.html'}")


@nox.session(default=False)
def generate(session: nox.Session) -> None:
    """Write anew what pages of the documentation have from the code."""
    session.install(".")
    session.run("python", "docs/generate.py")


@nox.session(default=False, venv_backend="virtualenv")
def lowest(session: nox.Session) -> None:
    """The oldest of all that we say we work with. pip cannot look for that, uv can."""
    session.install("uv")
    oldest = ("uv", "pip", "install", "--resolution=lowest-direct")
    session.run(*oldest, ".", *group("tests"))
    session.run("python", "-m", "pip", "list")
    session.run("pytest", "-n", "auto", "-m", "not (races or faults or conformance or foreign)")


@nox.session(default=False, venv_backend="virtualenv")
def upstream(session: nox.Session) -> None:
    """The newest of all that we depend on, without our caps: what the next upgrade would break."""
    wanted = [re.sub(r",<.*", "", each) for each in PROJECT["project"]["dependencies"]]
    eager = ("--upgrade", "--upgrade-strategy=eager")
    session.install(*eager, *wanted, *group("tests"))
    session.install("--no-deps", ".")
    session.run("python", "-m", "pip", "list")
    session.run("pytest", "tests/test_foundations.py")
    session.run("pytest", "-n", "auto", "-m", "not (races or faults or conformance or foreign)")


@nox.session(default=False)
def mutations(session: nox.Session) -> None:
    """Plant known bugs and see that the tests catch each; the table goes into the documentation."""
    session.install(".", *group("tests"))
    session.run("python", "tests/support/planting.py", *session.posargs)


@nox.session(default=False)
def soak(session: nox.Session) -> None:
    """A daemon at work for MINUTES (``-- MINUTES``), with faults; then nothing may have stayed."""
    session.install(".", *group("tests"))
    session.run("python", "tests/support/soak.py", *session.posargs)


@nox.session(default=False)
def servers(session: nox.Session) -> None:
    """Servers that others wrote, from empty caches; ``-- --proxy``: behind a proxy, too."""
    session.install(".", *group("tests"))
    session.run("python", "tests/support/servers.py", *session.posargs)


@nox.session(default=False)
def pictures(session: nox.Session) -> None:
    """The page in a browser, as pictures: all of them into FOLDER (``-- FOLDER``), or the docs'."""
    session.install(".", *group("tests"))
    session.run("python", "tests/support/page_pictures.py", *session.posargs)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """The benchmarks, each a table on stdout: all of them, or those named; with the arguments."""
    session.install(".")
    scripts = {script.stem: script for script in sorted(Path("benchmarks").glob("*.py"))}
    named = [word for word in session.posargs if word in scripts]
    arguments = [word for word in session.posargs if word not in scripts]
    for name in named or scripts:
        session.run("python", str(scripts[name]), *arguments)
