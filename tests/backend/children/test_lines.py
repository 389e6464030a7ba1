"""What the process tests do not say of it; those let real children say everything else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.backend.children.lines import Lines


@given(st.lists(st.binary(max_size=30)), st.integers(1, 10))
def test_lines_are_the_same_however_they_are_cut(chunks: list[bytes], most: int) -> None:
    whole = b"".join(chunks)
    cut, at_once = Lines(most), Lines(most)
    lines = [line for chunk in chunks for line in cut.feed(chunk)] + [cut.rest()]
    assert lines == [*at_once.feed(whole), at_once.rest()]
    assert sum(map(len, lines)) == len(whole) - whole.count(b"\n")
    assert max(map(len, lines)) <= most
