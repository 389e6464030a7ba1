from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_time import LINEAR, growth
from emceepee_trio.model.allowed import LONGEST, AllowedNames

names = st.text(st.sampled_from("ab*?[]!-\n_é"), max_size=8)


@given(st.lists(names, max_size=5), names)
def test_what_is_allowed_is_what_any_of_the_patterns_matches(
    patterns: list[str], name: str
) -> None:
    assert (name in AllowedNames.of(patterns)) == any(fnmatchcase(name, each) for each in patterns)


def test_plain_names_are_looked_up_and_the_same_glob_is_matched_once() -> None:
    allowed = AllowedNames.of(["a", "b", "a", "c*", "c*"])
    assert allowed.names == {"a", "b"}
    assert len(allowed.globs) == 1


def test_a_glob_matches_no_name_that_nobody_would_give() -> None:
    assert "x" * LONGEST in AllowedNames.of(["*"])
    assert "x" * (LONGEST + 1) not in AllowedNames.of(["*"])
    assert "x" * (LONGEST + 1) in AllowedNames.of(["x" * (LONGEST + 1)])


@pytest.mark.parametrize("stars", ["*a" * 90 + "*b", "*" * 200 + "b", "*[!b]" * 30 + "*b"])
def test_stars_do_not_multiply_the_work(stars: str) -> None:
    def make(size: int) -> Callable[[], object]:
        allowed = AllowedNames.of([stars])
        return lambda: ["a" * (LONGEST // 400 * size) in allowed for _ in range(200)]

    assert growth(make, 100) < LINEAR
