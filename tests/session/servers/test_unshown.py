from __future__ import annotations

import logging

import attrs
import pytest

from emceepee_trio.backend.connections.callbacks import LogLine
from emceepee_trio.config import Limits
from emceepee_trio.logs.lines import OURS
from emceepee_trio.session.buffers import Buffers
from emceepee_trio.session.servers.unshown import Unshown


def tails(found: list[Buffers]) -> list[list[str]]:
    return [kept.tail("x", "stderr", 100) for kept in found]


def test_the_newest_of_each_principal_are_kept_and_cut() -> None:
    unshown = Unshown(attrs.evolve(Limits(), logs=3, log_bytes=10))
    assert unshown.of(None) == unshown.of("ada") == []
    for number in range(5):
        unshown.keep("ada", LogLine("x", "stderr", "info", f"line {number}"))
    unshown.keep("bob", LogLine("x", "stderr", "info", "l" * 100))
    ada, bob = ["line 2", "line 3", "line 4"], ["l" * 10 + "…"]
    assert tails(unshown.of("ada")) == [ada]
    assert tails(unshown.of("bob")) == [bob]
    assert tails(unshown.of(None)) == [ada, bob]


def test_it_is_in_the_log_for_who_looks_that_closely(caplog: pytest.LogCaptureFixture) -> None:
    line = LogLine("x", "protocol", "alert", {"disk": "full"}, "root")
    for level, count in ((logging.INFO, 0), (logging.DEBUG, 1)):
        caplog.clear()
        with caplog.at_level(level, OURS):
            Unshown().keep("ada", line)
        assert len(caplog.records) == count
