"""Runs the protocol's own conformance suite on a server, and holds lists of exceptions to it.

An exception is listed by revision, as ``scenario`` or ``scenario:check``, in a file of groups that
have a reason each. A scenario must either be listed or do something and do it without a failure or
warning, and an entry that names nothing or excuses nothing is an error too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from outside import Npm

REVISIONS = ("2025-11-25", "2026-07-28")
FIXTURE = Path(__file__).parents[1] / "conformance" / "fixture_server.py"

Json = dict[str, Any]
Results = Mapping[str, Sequence[Json]]
"""By scenario, its checks."""

ON_THE_WIRE = {"wire-schema-valid", "wire-schema-harness-error"}
"""Checks of every message of a scenario, whatever it is about."""


@contextmanager
def fixture_server() -> Iterator[str]:
    """The URL of a server that has all that the suite asks of one."""
    process = subprocess.Popen([sys.executable, str(FIXTURE)], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def run(npm: Npm, url: str, revision: str) -> Results:
    """All scenarios that the suite has for a revision, and no others."""
    suite = npm.program("conformance")
    chosen = ("--spec-version", revision)
    expected = npm.run([*suite, "list", "--server", *chosen]).stdout
    with TemporaryDirectory(prefix="suite-", dir=npm.folder) as folder:
        options = ("--suite", "all", *chosen, "--output-dir", folder)
        said = npm.run([*suite, "server", "--url", url, *options], check=False).stdout
        results = {
            re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\dZ-]+$", "", each.name): json.loads(
                (each / "checks.json").read_text("utf-8")
            )
            for each in Path(folder).iterdir()
        }
    scenarios = {
        name
        for name, revisions in re.findall(r"^  - (\S+) \[(.*)\]$", expected, re.MULTILINE)
        if revision in revisions.split(",")
    }
    assert scenarios, expected
    assert results.keys() == scenarios, said
    return results


TASKS = (
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
)
"""Scenarios of the extension, which belong to no revision. Another of them does nothing yet."""


def run_tasks(npm: Npm, url: str) -> Results:
    """All of those, at once: each waits for most of its time."""
    suite = npm.program("conformance")

    def one(scenario: str) -> Sequence[Json]:
        with TemporaryDirectory(prefix="suite-", dir=npm.folder) as folder:
            command = [*suite, "server", "--url", url, "--scenario", scenario]
            said = npm.run([*command, "--output-dir", folder], check=False).stdout
            (checks,) = Path(folder).glob("*/checks.json")
            found: list[Json] = json.loads(checks.read_text("utf-8"))
            assert found, said
            return found

    with ThreadPoolExecutor() as pool:
        return dict(zip(TASKS, pool.map(one, TASKS), strict=True))


def listed(file: Path, revision: str) -> list[str]:
    groups = json.loads(file.read_text("utf-8"))
    return [entry for group in groups for entry in group.get(revision, ())]


def complaints(results: Results, entries: Sequence[str]) -> list[str]:
    """What is neither passed nor listed, and what is listed for nothing."""
    found = [f"{entry} is listed twice" for entry in set(entries) if entries.count(entry) > 1]
    used = set()
    for scenario, checks in results.items():
        problems = {c["id"]: c for c in checks if c["status"] in {"FAILURE", "WARNING"}}
        on_the_wire = {id: problems.pop(id) for id in ON_THE_WIRE & problems.keys()}
        found += [f"{scenario}: {_said(check)}" for check in on_the_wire.values()]
        did = [c for c in checks if c["status"] == "SUCCESS" and c["id"] not in ON_THE_WIRE]
        if scenario in entries:
            if problems or not did:
                used.add(scenario)
            continue
        excused = {id for id in problems if f"{scenario}:{id}" in entries}
        used |= {f"{scenario}:{id}" for id in excused}
        found += [f"{scenario}: {_said(problems[id])}" for id in problems.keys() - excused]
        if not did:
            found.append(f"{scenario} tested nothing")
    found += [f"{entry} is listed, and not needed" for entry in set(entries) - used]
    return sorted(found)


def outcomes(results: Results) -> dict[str, list[str]]:
    """By scenario, its checks and how they ended."""
    return {
        scenario: [f"{check['id']} {check['status']}" for check in checks if is_one(check)]
        for scenario, checks in results.items()
    }


def is_one(check: Json) -> bool:
    """Not what is there for information."""
    return bool(check["status"] != "INFO")


def tally(results: Results) -> dict[str, int]:
    """How many checks ended how."""
    return dict(Counter(c["status"] for checks in results.values() for c in checks if is_one(c)))


def _said(check: Json) -> str:
    return f"{check['id']} {check['status']}: {check.get('errorMessage')}"
