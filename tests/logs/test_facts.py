"""The lines of the log that are facts: which there are, and every byte of what they say."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.logs.facts import tell
from emceepee_trio.logs.lines import OURS, JsonLines
from emceepee_trio.model import facts
from emceepee_trio.model.facts import Fact
from emceepee_trio.model.states import QuestionState, TaskState

ID = "abcdefghijklmnopqrstuvwxyz"
CALL = (ID, "c1", "files", "dig")
ELICITATION: facts.Kind = "elicitation"
CLOSED = (ID, "q1", ELICITATION, "files")
HEAD: dict[str, Any] = {"session": "abcdefgh…"}
OF = {**HEAD, "server": "files"}
DIG = {**OF, "tool": "dig"}
ASKED = {**OF, "request_id": "q1"}


@pytest.mark.parametrize(
    ("fact", "level", "event", "fields"),
    [
        (facts.SessionOpened(0, ID, "local"), "info", "session_created", HEAD),
        (
            facts.SharingSplit(0, ID, "files", "roots", 3),
            "warn",
            "share_conflict",
            {**OF, "reason": "roots", "sessions": 3},
        ),
        (facts.SessionEnded(0, ID, "x"), "info", "session_destroyed", {**HEAD, "reason": "x"}),
        (
            facts.CallBegun(0, *CALL, has_args=True, args_bytes=9, within=None),
            "debug",
            "tool_execution_start",
            {**DIG, "has_args": True},
        ),
        (
            facts.CallPromoted(0, *CALL, 60000),
            "info",
            "tool_execution_timeout",
            {**DIG, "task_id": "c1"},
        ),
        (
            facts.CallSettled(0, *CALL, TaskState.COMPLETED, True, 7, None),
            "debug",
            "tool_execution_complete",
            {**DIG, "duration_ms": 7},
        ),
        (
            facts.CallSettled(0, *CALL, TaskState.FAILED, False, 7, "TOOL_ERR_LIMIT"),
            "warn",
            "tool_execution_failed",
            {**DIG, "code": "TOOL_ERR_LIMIT"},
        ),
        (facts.QuestionTold(0, *CLOSED), "info", "elicitation_received", ASKED),
        (
            facts.QuestionClosed(0, *CLOSED, QuestionState.ACCEPTED, "answered", 5),
            "info",
            "elicitation_responded",
            {**ASKED, "duration_ms": 5},
        ),
        (
            facts.QuestionClosed(0, *CLOSED, QuestionState.EXPIRED, "late", 5),
            "warn",
            "elicitation_timeout",
            ASKED,
        ),
        (
            facts.QuestionClosed(0, *CLOSED, QuestionState.REJECTED, "rejected", 5),
            "warn",
            "elicitation_rejected",
            ASKED,
        ),
        (
            facts.QuestionClosed(0, *CLOSED, QuestionState.CANCELLED, "cancelled", 5),
            "info",
            "elicitation_cancelled",
            ASKED,
        ),
        (facts.StreamEvicted(0, ID, 1, 4), "warn", "stream_eviction", {**HEAD, "evicted": 4}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_line_says(fact: Fact, level: str, event: str, fields: dict[str, Any]) -> None:
    (line,) = written(fact)
    said = json.loads(line)
    del said["timestamp"]
    assert list(said.items()) == [("level", level), ("event", event), *fields.items()]


@pytest.mark.parametrize(
    "fact",
    [
        facts.CallSettled(0, *CALL, TaskState.CANCELLED, True, 7, "TOOL_ERR_EXECUTION_FAILED"),
        facts.CallSettled(0, *CALL, TaskState.EXPIRED, True, 7, "TOOL_ERR_EXECUTION_FAILED"),
        facts.QuestionClosed(0, *CLOSED, QuestionState.REJECTED, "unheard", 5),
        facts.StreamEvicted(0, ID, 1, 5),
    ],
)
def test_what_says_nothing(fact: Fact) -> None:
    assert written(fact) == []


@given(st.lists(st.integers(1, 9), max_size=20))
def test_evictions_are_told_as_they_double(counts: list[int]) -> None:
    evicted, told = 0, []
    for count in counts:
        evicted += count
        told += written(facts.StreamEvicted(0, ID, count, evicted))
    assert len(told) <= evicted.bit_length()
    assert bool(told) is bool(counts)


def written(fact: Fact) -> list[str]:
    """What is logged for it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger(OURS)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        tell(fact)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    return stream.getvalue().splitlines()
