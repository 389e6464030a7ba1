"""Writing in steps says the same, and no step is long."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given

from emceepee_trio.model.json import spelling
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.json.spelling import CHARACTERS, is_long, spell
from emceepee_trio.model.wire import dumps
from strategies import json_values


@pytest.mark.parametrize(("values", "characters"), [(1, 1), (2, 7), (5, 40)])
@given(value=json_values)
def test_the_same_is_said(values: int, characters: int, value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spelling, "VALUES", values)
        patch.setattr(spelling, "CHARACTERS", characters)
        for whole in ([value, value], {"a": value, "": [value]}, {"long name": 1, "b": value}):
            if is_long(whole):
                assert finished(spell(whole)) == dumps(whole)


ROWS = [{"id": n, "name": f"n{n}", "tags": ["a", {"b": None}]} for n in range(20_000)]
DEEP: Any = "x" * 500_000
for _ in range(190):
    DEEP = [DEEP, {"a": DEEP if isinstance(DEEP, str) else 1}]


@pytest.mark.parametrize(
    "value",
    [
        {"rows": ROWS, "x": "y"},
        ["ab\n" * 1_000_000, 1],
        {"x" * 300_000: 1, "y": "z" * 300_000},
        DEEP,
        [{"a": "\ud83e" * 200_000}, math.nan],
        {str(n): n for n in range(50_000)},
    ],
    ids=["rows", "lines", "names", "deep", "surrogates", "members"],
)
def test_what_is_long_is_written_in_steps(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0

    def dumped(part: Any) -> str:
        nonlocal longest
        text = dumps(part)
        longest = max(longest, len(text))
        return text

    monkeypatch.setattr(spelling, "dumps", dumped)
    assert is_long(value)
    text = finished(spell(value))
    assert json.loads(text) == json.loads(dumps(value))
    assert longest <= 12 * CHARACTERS  # six for each character that is escaped, and names
    assert sum(1 for _ in spell(value)) >= len(text) / (6 * CHARACTERS)


@pytest.mark.parametrize("value", [{}, 1, "x" * 1000, [1] * 1000, {"content": [{"text": "a"}]}])
def test_what_is_short_is_not(value: Any) -> None:
    assert not is_long(value)
