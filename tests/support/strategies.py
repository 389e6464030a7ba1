"""What hypothesis makes for more than one test: JSON, and everything that can happen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import attrs
from hypothesis import strategies as st

from emceepee_trio.model.events import Happening
from emceepee_trio.model.json.schema import arms, is_union

texts = st.text(st.characters(codec="utf-8"), max_size=10)
keys = st.sampled_from(["a", "snake_case", "camelCase", "_meta", "None", "", "ü"]) | texts
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(keys, json_values, max_size=4)
"""What a peer sends as params: any keys, null among the values."""

servers = st.sampled_from(["files", "web", "b"])


def _of_type(annotation: Any) -> st.SearchStrategy[Any]:
    if is_union(annotation):
        inner = [_of_type(arm) for arm in arms(annotation)]
        return (
            st.one_of(st.none(), *inner) if NoneType in get_args(annotation) else st.one_of(inner)
        )
    if get_origin(annotation) is Literal:
        return st.sampled_from(get_args(annotation))
    if get_origin(annotation) is Mapping:
        return objects
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: texts,
        int: st.integers(0, 10**6),
        bool: st.booleans(),
        Sequence[str]: st.lists(texts),
    }
    return simple[annotation]


def instances_of(cls: type) -> st.SearchStrategy[Any]:
    """Of an attrs class of the model, each field of its annotated type."""
    fields = attrs.fields(attrs.resolve_types(cls))
    return st.builds(cls, **{field.name: _of_type(field.type) for field in fields})


happenings: st.SearchStrategy[Any] = st.sampled_from(get_args(Happening)).flatmap(instances_of)
