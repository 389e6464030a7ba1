from __future__ import annotations

from typing import Any, get_args

import attrs
import pytest
from hypothesis import given

from emceepee_trio.model.events import Event, Happening
from strategies import happenings


@pytest.mark.parametrize("cls", get_args(Happening), ids=lambda cls: cls.__name__)
def test_what_has_happened_cannot_be_changed(cls: type[Any]) -> None:
    fields = [field.name for field in attrs.fields(cls)]
    happening = cls(*fields)
    for name in fields:
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(happening, name, "other")
    with pytest.raises(AttributeError):
        happening.unknown = 1


@pytest.mark.parametrize("cls", get_args(Happening), ids=lambda cls: cls.__name__)
def test_only_what_the_table_marks_as_optional_may_be_left_out(cls: type[Any]) -> None:
    for field in attrs.fields(cls):
        assert field.default in (attrs.NOTHING, None)


@given(happenings)
def test_equal_happenings_are_equal_and_an_event_counts_one(happening: Any) -> None:
    assert attrs.evolve(happening) == happening
    assert Event("id", "server", "now", happening, "{}", 2).count == 1
