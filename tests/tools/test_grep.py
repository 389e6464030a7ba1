"""What is found in a kept text is what is in its lines, however it is cut on the way."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.session.kept import Kept
from emceepee_trio.tools.results import grep
from emceepee_trio.tools.results.grep import Grep

LITTLE = st.text(alphabet="ab\nü", max_size=60)
PATTERNS = st.sampled_from(["a", "ab", "aab", "ü", "b+a", "ab*", "a.b", "[ab]b", "ba?", "x"])


def kept_as(said: str) -> Kept:
    kept = Kept("id", "text/plain", True)
    kept.hold(said.encode())
    return kept


@pytest.mark.parametrize("has_memmem", [True, False])
def test_every_line_with_a_match_is_found_wherever_blocks_and_pieces_end(
    monkeypatch: pytest.MonkeyPatch, has_memmem: bool
) -> None:
    monkeypatch.setattr(grep, "BLOCK", 120)  # of which four are longer than any line here
    monkeypatch.setattr(grep, "SCAN", 7)
    if not has_memmem:
        monkeypatch.setattr(grep, "_MEMMEM", None)

    @given(st.lists(LITTLE, max_size=4).map("".join), PATTERNS)
    def check(said: str, pattern: str) -> None:
        found = Grep.of(pattern).among(kept_as(said), 0, len(said.encode()), 10_000)
        lines = said.split("\n")
        expected = [(n, line) for n, line in enumerate(lines, 1) if re.search(pattern, line)]
        assert found.lines == expected
        assert found.matches == len(expected)
        assert found.is_complete

    check()


def test_a_literal_in_a_long_line_is_found_where_it_is() -> None:
    said = "x" * 3_000_000 + "needle" + "y" * 3_000_000 + "\nshort needle\n"
    found = Grep.of("needle").among(kept_as(said), 0, len(said), 10_000)
    (first, shown), (second, short) = found.lines
    assert (first, second, short) == (1, 2, "short needle")
    assert shown.startswith("(byte 3000000) …x")
    assert "xneedley" in shown
    assert found.matches == 2


def test_a_literal_is_not_looked_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "EFFORT", 0.0)
    found = Grep.of("needle").among(kept_as("x\n" * 1000), 0, 2000, 10_000)
    assert not found.is_complete
    assert found.until == 0


def test_flags_that_are_for_texts_alone() -> None:
    found = Grep.of("(?u)b").among(kept_as("a\nb\n"), 0, 4, 1000)
    assert found.lines == [(2, "b")]
