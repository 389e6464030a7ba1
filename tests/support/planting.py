"""Plants known bugs, one at a time, and sees whether the tests that should catch them do.

``python tests/support/planting.py [--jobs N] [WORDS]``, or ``nox -s mutations``: all of them, or
those in whose description one of the words is. Each job works on a copy of the package and its
tests. The rows of ``docs/mutations.rst`` are written anew as they come, so that an interrupted run
has not been in vain. Exits with 1 if a bug survived or could not be planted. The bugs are in
``mutants/``.
"""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from enum import Enum
from pathlib import Path

import attrs

from mutants import Mutant
from mutants.backend import BACKEND
from mutants.finding import FINDING
from mutants.front import FRONT
from mutants.gateway import GATEWAY
from mutants.home import HOME
from mutants.native import NATIVE
from mutants.page import PAGE as OF_PAGE
from mutants.peers import PEERS
from mutants.relay import RELAY
from mutants.results import RESULTS
from mutants.scripts import SCRIPTS
from mutants.session import SESSION
from mutants.sharing import SHARED
from mutants.slow import SLOW
from mutants.timelines import TIMELINES
from mutants.users import USERS
from mutants.watching import WATCHING

ALL = (
    *(*SESSION, *BACKEND, *FRONT, *SLOW, *PEERS, *USERS, *RESULTS, *FINDING, *SCRIPTS, *NATIVE),
    *RELAY,
    *SHARED,
    *GATEWAY,
    *HOME,
    *WATCHING,
    *TIMELINES,
    *OF_PAGE,
)

ROOT = Path(__file__).parents[2]
PACKAGE = "emceepee_trio"
PAGE = ROOT / "docs" / "mutations.rst"
COPIED = (PACKAGE, "tests", "pyproject.toml")

GUARD = 120.0
"""Seconds for the tests of one bug, of which many can only hang. Without it they take a few."""
ALL_OF_THEM = 3600.0
"""Seconds for the tests of all bugs, without any."""
GOODBYE = 30.0
"""Seconds for interrupted tests to end what they have started."""

HEAD = """\
Mutations
=========

Bugs that this program could have, most of which others had, and the test that fails of each.
``nox -s mutations`` plants them one at a time in a copy of the package, runs the tests that should
catch them, and writes this table; a bug that survives is an error. They are in
``tests/support/mutants``.

.. list-table::
   :header-rows: 1
   :widths: 45 20 35

   * - Bug
     - Planted in
     - Caught by
"""


class Fate(Enum):
    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    BROKEN = "BROKEN"
    """Nothing can be said: it could not be planted, or its tests do not run."""


@attrs.frozen
class Outcome:
    mutant: Mutant
    fate: Fate
    by: str
    """The test that failed, or why there is none."""


def planted(mutant: Mutant, read: Callable[[str], str]) -> dict[str, str]:
    """Each file that has a piece of the bug, with it.

    Raises:
        ValueError: what is to be replaced is not there exactly once.
    """
    found: dict[str, str] = {}
    for file, old, new in mutant.pieces():
        source = found.get(file) or read(file)
        if (count := source.count(old)) != 1:
            raise ValueError(f"its piece of {file} is there {count} times")
        found[file] = source.replace(old, new)
    return found


@attrs.frozen
class Copy:
    """Of the package and its tests; every process that tests start finds this one."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> Copy:
        for name in COPIED:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, root / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, root / name)
        return cls(root)

    def run(self, *command: str, guard: float) -> tuple[int | None, str]:
        """Exit code, None if it took too long, and what it said; nothing of it is left."""
        environment = os.environ | {
            # Before what is installed. Children that get no environment of ours find it in the
            # folder they start in.
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "1",  # a file may change twice within a tick of its clock
            "TMPDIR": str(self.root),
        }
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=guard)
                return process.returncode, said
            except subprocess.TimeoutExpired:
                said = _end(process)
                return None, said
            finally:
                _signal(process.pid, signal.SIGKILL)

    def pytest(self, tests: Iterable[str], guard: float, *more: str) -> tuple[int | None, str]:
        chosen = [f"tests/{test}" for test in tests]
        quietly = ("-q", "-x", "--tb=no", "-p", "no:randomly", "-p", "no:cacheprovider")
        # What is caught shall not depend on chance, and nobody reads the shortest program.
        same = ("--hypothesis-seed=0", "--hypothesis-profile=planted")
        command = (sys.executable, "-P", "-m", "pytest", *quietly, *same, *more, *chosen)
        return self.run(*command, guard=guard)

    def failing(self, tests: Iterable[str], jobs: int) -> list[str]:
        """Those that fail without any bug, and do so again when they are alone."""
        once, maxfail = dict.fromkeys(tests), ("--maxfail=0", "-n", str(jobs))
        code, said = self.pytest(once, ALL_OF_THEM, *maxfail)
        if code not in (0, 1):
            sys.exit(f"without any bug these tests do not run:\n{said}")
        names = re.findall(r"^(?:FAILED|ERROR) tests/([^\s\[]+)", said, re.MULTILINE)
        return [name for name in dict.fromkeys(names) if self.pytest([name], GUARD)[0] != 0]

    def is_used(self) -> bool:
        code, said = self.run(
            *(sys.executable, "-P", "-c", f"import {PACKAGE}; print({PACKAGE}.__file__)"),
            guard=GUARD,
        )
        return code == 0 and Path(said.strip()).is_relative_to(self.root)

    def _write(self, sources: Mapping[str, str]) -> None:
        for file, source in sources.items():
            (self.root / PACKAGE / file).write_text(source)

    def fate_of(self, mutant: Mutant) -> Outcome:
        package = self.root / PACKAGE
        try:
            with_bug = planted(mutant, lambda file: (package / file).read_text())
            for file, source in with_bug.items():
                compile(source, file, "exec")
        except (ValueError, SyntaxError) as error:
            return Outcome(mutant, Fate.BROKEN, str(error))
        right = {file: (package / file).read_text() for file in with_bug}
        self._write(with_bug)
        try:
            code, said = self.pytest(mutant.tests, GUARD)
        finally:
            self._write(right)
        failed = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", said, re.MULTILINE)
        match code:
            case 0:
                return Outcome(mutant, Fate.SURVIVED, "")
            case None:
                return Outcome(mutant, Fate.CAUGHT, f"{mutant.tests[0]}, which hangs")
            case 1 if failed is not None:
                return Outcome(mutant, Fate.CAUGHT, failed[1].partition("[")[0])
            case _:
                return Outcome(mutant, Fate.BROKEN, said)


def _end(process: subprocess.Popen[str]) -> str:
    """Let it end its own children, and then whatever is left of its group."""
    process.send_signal(signal.SIGINT)
    try:
        return process.communicate(timeout=GOODBYE)[0]
    except subprocess.TimeoutExpired:
        _signal(process.pid, signal.SIGKILL)
        return process.communicate()[0]


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def outcomes(mutants: Sequence[Mutant], jobs: int) -> Iterator[Outcome]:
    """In the order in which they are known; so many at a time, since most of it is waiting."""
    with ExitStack() as stack:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for _ in range(jobs):
            copies.put(Copy.make(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        copy = copies.get()
        if not copy.is_used():
            sys.exit("tests would not use the copy")
        broken = copy.failing([test for mutant in mutants for test in mutant.tests], jobs)
        copies.put(copy)

        def fate_of(mutant: Mutant) -> Outcome:
            if bad := [name for name in broken if name.startswith(mutant.tests)]:
                return Outcome(mutant, Fate.BROKEN, f"{bad[0]} fails without any bug")
            copy = copies.get()
            try:
                return copy.fate_of(mutant)
            finally:
                copies.put(copy)

        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        try:
            for done in as_completed([pool.submit(fate_of, mutant) for mutant in mutants]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def page(found: Iterable[Outcome], before: str = "") -> str:
    """A row for each bug: what was *found*, or what the page said *before*, or none."""
    known = {row.partition("\n")[0]: f"   * - {row}" for row in before.split("   * - ")[1:]}
    for outcome in found:
        bug, file = outcome.mutant.bug, outcome.mutant.file
        known[bug] = f"   * - {bug}\n     - ``{file}``\n     - {_shown(outcome)}\n"
    return HEAD + "".join(known[mutant.bug] for mutant in ALL if mutant.bug in known)


def _shown(outcome: Outcome) -> str:
    if outcome.fate is not Fate.CAUGHT:
        return f"**{outcome.fate.value}**"
    file, _, test = outcome.by.partition("::")
    name = test.removesuffix("::runTest").rpartition("::")[2]  # of a machine, its class
    return f"``{file}``" + (f": {name.removeprefix('test_').replace('_', ' ')}" if name else "")


def main(words: Sequence[str], jobs: int) -> int:
    chosen = [m for m in ALL if not words or any(word in m.bug for word in words)]
    found = []
    for outcome in outcomes(chosen, min(jobs, len(chosen))):
        found.append(outcome)
        print(f"{outcome.fate.value:8}  {outcome.mutant.bug}  ({outcome.by})", flush=True)
        PAGE.write_text(page([outcome], PAGE.read_text()))
    return any(outcome.fate is not Fate.CAUGHT for outcome in found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="WORDS", help="of descriptions of bugs")
    parser.add_argument(
        *("-j", "--jobs"),
        type=int,
        default=(os.cpu_count() or 1) + 1,  # most bugs show by something that does not come
        help="how many at a time (default: %(default)s)",
    )
    arguments = parser.parse_args()
    sys.exit(main(arguments.words, arguments.jobs))
