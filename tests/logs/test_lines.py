from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from emceepee_trio.config.bounds import MAX_LOG_FIELD, MAX_LOG_TRACEBACK
from emceepee_trio.logs.lines import OURS, JsonLines, TextLines, cut


def record(
    event: str = "event",
    *args: Any,
    bug: BaseException | None = None,
    name: str = OURS,
    **fields: Any,
) -> logging.LogRecord:
    exc_info = (type(bug), bug, bug.__traceback__) if bug is not None else None
    made = logging.LogRecord(name, logging.WARNING, "", 0, event, args, exc_info)
    made.fields = fields
    return made


def shown(**fields: Any) -> Any:
    return json.loads(JsonLines().format(record(**fields)))


def test_what_is_short_is_written_as_it_is() -> None:
    fields = {"a": "x" * MAX_LOG_FIELD, "b": 1, "c": 1.5, "d": True, "e": ["f", {"g": None}]}
    assert {key: shown(**fields)[key] for key in fields} == fields


def test_what_is_long_keeps_its_beginning_and_its_end() -> None:
    text = "begin" + "x" * 15_000_000 + "end"
    for value in (text, [text], {"a": {"b": text}}):
        said = str(shown(error=value)["error"])
        assert len(said) < MAX_LOG_FIELD + 100
        assert "begin" in said[:20]
        assert "end" in said[-20:]
        assert " characters more … " in said
    assert f" … {len(text) - MAX_LOG_FIELD} characters more … " in cut(text)


def test_a_number_is_not_longer_than_a_word() -> None:
    assert shown(n=2**63 - 1)["n"] == 2**63 - 1
    assert shown(n=10**10_000)["n"] == "an integer of 33220 bits"


def failed(message: str, depth: int = 0) -> BaseException:
    try:
        if depth:
            raise failed(message, depth - 1)
        raise ValueError(message)
    except ValueError as error:
        return error


def endless(n: int) -> int:
    return endless(n + 1) if n >= 0 else endless(-n)


def test_a_traceback_is_bounded_and_ends_with_what_went_wrong() -> None:
    said = shown(bug=failed("so it is"))["traceback"]
    assert said.startswith("Traceback")
    assert said.endswith("ValueError: so it is\n")
    assert len(shown(bug=failed("x" * 15_000_000))["traceback"]) < MAX_LOG_TRACEBACK + 100
    with pytest.raises(RecursionError) as caught:
        endless(sys.getrecursionlimit())
    said = shown(bug=caught.value)["traceback"]
    assert len(said) < MAX_LOG_TRACEBACK + 100
    assert "RecursionError" in said


class Unspeakable:
    def __str__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "made",
    [
        record("of it", field=nested(100_000)),
        record("of it", field=Unspeakable()),
        record("of it", field={(1, 2): 3}),
        record("of it", 1, 2, name="elsewhere"),
    ],
)
def test_what_cannot_be_written_is_said_to_be_so(made: logging.LogRecord) -> None:
    said = json.loads(JsonLines().format(made))
    assert said["event"] == "log_line_failed"
    assert said["of"] == "of it"
    assert "log_line_failed" in TextLines().format(made)


def test_lines_of_other_libraries_are_bounded_as_well() -> None:
    made = record("%s", "x" * 1_000_000, name="elsewhere")
    said = json.loads(JsonLines().format(made))
    assert said["event"] == "elsewhere"
    assert len(said["message"]) < MAX_LOG_FIELD + 100
