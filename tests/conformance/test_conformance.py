"""The protocol's own conformance suite against our endpoint.

What it cannot ask of us, because it wants tools of its own, is listed in ``not_applicable.json``,
by revision, as ``scenario`` or ``scenario:check``. The list is held to what it says: a scenario
must either be listed or do something and do it without a failure or warning, and an entry that
names nothing or excuses nothing is an error too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from outside import CONFORMANCE, Npm, install
from served import serve

REVISIONS = ("2025-11-25", "2026-07-28")
LIST = Path(__file__).with_name("not_applicable.json")

Json = dict[str, Any]
Results = Mapping[str, Sequence[Json]]
"""By scenario, its checks."""

ON_THE_WIRE = {"wire-schema-valid", "wire-schema-harness-error"}
"""Checks of every message of a scenario, whatever it is about."""


def listed(revision: str) -> list[str]:
    groups = json.loads(LIST.read_text("utf-8"))
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


def _said(check: Json) -> str:
    return f"{check['id']} {check['status']}: {check.get('errorMessage')}"


@pytest.fixture(scope="module")
def npm() -> Iterator[Npm]:
    with TemporaryDirectory(prefix="npm-") as folder:
        yield install(Path(folder), CONFORMANCE)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    # The suite leaves calls behind that wait for it.
    config.write_text(json.dumps({"shutdown_grace_ms": 0}), "utf-8")
    with serve(folder, "--demo", "--no-auth", "--config", str(config)) as daemon:
        yield daemon.url


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_passes_or_is_listed_as_not_applicable(
    npm: Npm, url: str, revision: str, tmp_path: Path
) -> None:
    suite = npm.program("conformance")
    chosen = ("--spec-version", revision)
    expected = npm.run([*suite, "list", "--server", *chosen]).stdout
    options = ("--suite", "all", *chosen, "--output-dir", str(tmp_path))
    said = npm.run([*suite, "server", "--url", url, *options], check=False).stdout
    results = {
        re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\dZ-]+$", "", folder.name): json.loads(
            (folder / "checks.json").read_text("utf-8")
        )
        for folder in tmp_path.iterdir()
    }
    scenarios = {
        name
        for name, revisions in re.findall(r"^  - (\S+) \[(.*)\]$", expected, re.MULTILINE)
        if revision in revisions.split(",")
    }
    assert scenarios, expected
    assert results.keys() == scenarios, said
    assert not complaints(results, listed(revision))


def check(id: str, status: str = "SUCCESS") -> Json:
    return {"id": id, "status": status, "errorMessage": "why"}


WIRE = check("wire-schema-valid")


@pytest.mark.parametrize(
    ("checks", "entries", "said"),
    [
        ([check("a"), WIRE], [], []),
        ([check("a"), check("b", "SKIPPED"), check("c", "INFO")], [], []),
        ([check("a"), check("b", "FAILURE")], [], ["s: b FAILURE: why"]),
        ([check("a"), check("b", "WARNING")], [], ["s: b WARNING: why"]),
        ([check("a"), check("b", "FAILURE")], ["s"], []),
        ([check("a"), check("b", "FAILURE")], ["s:b"], []),
        ([check("b", "FAILURE"), WIRE], ["s:b"], ["s tested nothing"]),
        ([check("a"), check("b", "FAILURE")], ["s:a", "s:b"], ["s:a is listed, and not needed"]),
        ([check("a"), WIRE], ["s"], ["s is listed, and not needed"]),
        ([check("a"), WIRE], ["gone", "s:gone"], ["gone", "s:gone"]),
        ([check("b", "INFO"), WIRE], [], ["s tested nothing"]),
        ([check("b", "INFO"), WIRE], ["s"], []),
        ([check("a", "FAILURE")], ["s", "s"], ["s is listed twice"]),
        (
            [check("a", "FAILURE"), check("wire-schema-valid", "FAILURE")],
            ["s"],
            ["s: wire-schema-valid FAILURE: why"],
        ),
    ],
)
def test_a_scenario_is_passed_or_listed_and_never_both(
    checks: list[Json], entries: list[str], said: list[str]
) -> None:
    found = complaints({"s": checks}, entries)
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


def test_the_list_gives_a_reason_for_each_entry_and_knows_no_other_revisions() -> None:
    groups = json.loads(LIST.read_text("utf-8"))
    assert all(group["reason"] and group.keys() - {"reason"} <= {*REVISIONS} for group in groups)
