"""Texts that are JSON, or nearly, in any spelling."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from emceepee_trio.model.json import intake
from emceepee_trio.model.json.long import cutting, joining, reading, value

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(
        ["\\", '"', '\\"', "[", "]", "{", "}", ",", ":", "\ud83d", "ü" * 20, "1" * 400]
    ),
)
json_like = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | scalars.map(str), inner),
    max_leaves=20,
)


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    value = draw(json_like)
    indent = draw(st.sampled_from([None, 0, 3]))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent)
    return text.encode(errors="replace")


def in_slices_of(size: int, patch: pytest.MonkeyPatch, long: int = 2**62) -> None:
    """Texts are gone through in slices of so many bytes, and values are *long* from so many on."""
    for module in (intake, cutting, joining, reading, value):
        patch.setattr(module, "SLICE", size)
    patch.setattr(cutting, "LONG", long)
