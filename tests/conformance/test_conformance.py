"""The protocol's own conformance suite against our endpoint, and what the suite is held to.

What it cannot ask of us, because it wants tools of its own, is listed in ``not_applicable.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from official_suite import REVISIONS, Json, complaints, listed, run
from outside import Npm
from served import serve

LIST = Path(__file__).with_name("not_applicable.json")


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
    npm: Npm, url: str, revision: str
) -> None:
    assert not complaints(run(npm, url, revision), listed(LIST, revision))


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
