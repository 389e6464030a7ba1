"""The suite on our fixture itself: what goes wrong through us is then ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from official_suite import fixture_server, run, tally
from outside import Npm


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fixture_server() as url:
        yield url


@pytest.mark.parametrize(("revision", "passed"), [("2025-11-25", 84), ("2026-07-28", 152)])
def test_it_has_all_that_the_suite_asks_of_a_server(
    npm: Npm, url: str, revision: str, passed: int
) -> None:
    assert tally(run(npm, url, revision)) == {"SUCCESS": passed}
