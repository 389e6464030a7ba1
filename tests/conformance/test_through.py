"""The suite on our fixture: by itself, through our views of it, and across eras.

What a client of the one era cannot be shown of a server of the other is listed in ``crossed.json``,
what is otherwise where it is one of many in ``natively.json``, and in ``without_tasks.json`` what
becomes of tasks that a server of neither era has by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from official_suite import (
    Results,
    complaints,
    fixture_server,
    listed,
    outcomes,
    run,
    run_tasks,
    tally,
)
from outside import Npm
from renaming import renamed
from served import serve

CROSSED = Path(__file__).with_name("crossed.json")
NATIVELY = Path(__file__).with_name("natively.json")
WITHOUT_TASKS = Path(__file__).with_name("without_tasks.json")
PASSED = {"2025-11-25": 84, "2026-07-28": 152}
ERA = {"2025-11-25": "handshake", "2026-07-28": "modern"}
OTHER = {"2025-11-25": "modern", "2026-07-28": "handshake"}
"""The era that a client of that revision does not speak."""


@pytest.fixture(scope="module")
def fixture() -> Iterator[str]:
    with fixture_server() as url:
        yield url


@pytest.fixture(scope="module")
def ours(fixture: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where our views of its servers are."""
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    base = fixture.removesuffix("/mcp")
    settings = {
        "mcpServers": {era: {"url": f"{base}/{era}/mcp"} for era in ERA.values()},
        "shutdown_grace_ms": 0,
        "native": {"max_name": 128},  # none is cut, so that they can be mapped by eye
        "context": "off",
    }
    config.write_text(json.dumps(settings), "utf-8")
    with serve(folder, "--no-auth", "--config", str(config)) as daemon:
        yield daemon.url.removesuffix("/mcp")


@pytest.fixture(scope="module", params=PASSED)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def direct(npm: Npm, fixture: str, revision: str) -> Results:
    return run(npm, fixture, revision)


def test_the_fixture_has_all_that_the_suite_asks_of_a_server(
    direct: Results, revision: str
) -> None:
    assert tally(direct) == {"SUCCESS": PASSED[revision]}


def test_through_us_it_is_the_same(npm: Npm, ours: str, direct: Results, revision: str) -> None:
    results = run(npm, f"{ours}/servers/{ERA[revision]}/mcp", revision)
    assert outcomes(results) == outcomes(direct)


def test_natively_it_is_the_same_but_for_names(npm: Npm, ours: str, revision: str) -> None:
    with renamed(f"{ours}/mcp?view=native&session={revision}", ERA[revision]) as url:
        results = run(npm, url, revision)
    assert not complaints(results, listed(NATIVELY, revision))


@pytest.mark.parametrize("era", ERA.values())
def test_every_server_gains_tasks(npm: Npm, ours: str, era: str) -> None:
    results = run_tasks(npm, f"{ours}/servers/{era}/mcp")
    assert not complaints(results, listed(WITHOUT_TASKS, era))


def test_in_its_other_era_it_has_what_that_can_show(npm: Npm, ours: str, revision: str) -> None:
    results = run(npm, f"{ours}/servers/{OTHER[revision]}/mcp", revision)
    assert not complaints(results, listed(CROSSED, revision))
