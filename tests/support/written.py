"""JSON as people and editors write it: comments, trailing commas, any white space, odd names."""

from __future__ import annotations

import json

from hypothesis import strategies as st

BLANK = st.sampled_from(["", " ", "\n", "\n  ", "\t", "/* c, } */", " // l }\n", "\r\n"])
NAMES = st.sampled_from(["a", "s", "new", 'q"}', "ü", "//", "mcpServers"])
LEAVES = st.one_of(
    st.sampled_from(["1", "true", "null", '"x"', '"// no"', '"\\\\"', '"{,"', "[]", "[1, {}]"])
)


@st.composite
def written(draw: st.DrawFn, depth: int = 3, *, is_object: bool = False) -> str:
    """A value as somebody may have written it."""
    if not is_object and (depth == 0 or draw(st.integers(0, 3)) == 0):
        return draw(LEAVES)
    names = draw(st.lists(NAMES, unique=True, max_size=3))
    members = [
        f"{draw(BLANK)}{json.dumps(name)}{draw(BLANK)}:{draw(BLANK)}{draw(written(depth - 1))}"
        for name in names
    ]
    comma = draw(st.sampled_from(["", ","])) if members else ""
    return "{" + f"{draw(BLANK)},".join(members) + draw(BLANK) + comma + draw(BLANK) + "}"
