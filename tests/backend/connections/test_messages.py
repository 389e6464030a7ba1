"""What is made of what a server says; the tests of the transports let real servers say it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    INTERNAL_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from emceepee_trio.backend.connections.messages import REFUSED, Said, dump, parse
from emceepee_trio.model.json.intake import Measure, finished
from emceepee_trio.model.json.long.partly import Partly, unfolded
from emceepee_trio.model.json.long.text import LongText
from emceepee_trio.model.json.long.value import LongValue
from mistakes import nested, spelled

MEASURE = Measure(1 << 24, 10_000)
DEEP = spelled(nested(100_000)).encode()


def said(text: bytes) -> Said:
    return finished(parse(text, MEASURE))


@given(st.text())
def test_what_is_dumped_is_one_line_and_parsed_to_the_same(value: str) -> None:
    message = JSONRPCNotification(jsonrpc="2.0", method="m", params={"value": value})
    line = finished(dump(message))
    assert b"\n" not in line
    assert said(line) == Said([message])


UNFIT = [
    (DEEP, "is nested deeper than 200 levels"),
    (spelled(nested(200)).encode(), "is nested deeper than 200 levels"),
    (b"1" * 5000, "holds a number of more than 308 digits"),
    (b"9" * 400, "holds a number of more than 308 digits"),
    (b"[" + b"{}," * 20_000 + b"{}]", "holds more than 10000 values (limits.values)"),
    (b'"caf\xe9"', "is not UTF-8"),
    (b"[1,]", "is not JSON: "),
]


@pytest.mark.parametrize(("value", "why"), UNFIT)
@pytest.mark.parametrize("request_id", [b"1000000", b'"1000000"', b"1000000.0"])
@pytest.mark.parametrize("member", [b"result", b"error"])
def test_an_answer_that_is_not_taken_is_an_error_for_who_waits(
    value: bytes, why: str, request_id: bytes, member: bytes
) -> None:
    wanted = "1000000" if request_id[:1] == b'"' else 1_000_000
    for text in (
        b'{"jsonrpc": "2.0", "id": %b, "%b": {"x": %b}}' % (request_id, member, value),
        b'[{"id": %b, "%b": {"x": %b}}]' % (request_id, member, value),
    ):
        (message,) = said(text).messages
        assert isinstance(message, JSONRPCError)
        assert (message.id, message.error.code) == (wanted, INTERNAL_ERROR)
        assert message.error.message.startswith(f"the server's message {why}")


@pytest.mark.parametrize(("value", "why"), UNFIT)
def test_a_question_that_is_not_taken_is_refused(value: bytes, why: str) -> None:
    text = b'{"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"x": %b}}'
    (message,) = said(text % value).messages
    assert isinstance(message, JSONRPCRequest)
    assert (message.id, message.method) == ("q", REFUSED)
    assert message.params is not None
    assert message.params["message"].startswith(f"the server's message {why}")


@pytest.mark.parametrize(("value", "why"), UNFIT)
def test_a_notification_that_is_not_taken_is_told_of_in_the_log(value: bytes, why: str) -> None:
    text = b'{"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": %b}}' % value
    found = said(text)
    (message,) = found.messages
    assert isinstance(message, JSONRPCNotification)
    assert message.method == "notifications/message"
    assert message.params is not None
    assert message.params["level"] == "warning"
    assert message.params["data"].startswith(f"the server's message {why}")
    assert message.params["data"].endswith(": notifications/x")


@pytest.mark.parametrize("request_id", ["7.0", "7", '"7"'])
def test_an_id_may_be_spelled_in_any_way(request_id: str) -> None:
    (message,) = said(f'{{"jsonrpc": "2.0", "id": {request_id}, "result": {{}}}}'.encode()).messages
    assert isinstance(message, JSONRPCResponse)
    assert message.id in (7, "7")
    assert type(message.id) is not float


@pytest.mark.parametrize("question", ['"method": 7', '"method": "m", "params": [1]'])
def test_a_question_of_a_wrong_shape_is_refused(question: str) -> None:
    (message,) = said(f'{{"jsonrpc": "2.0", "id": 3, {question}}}'.encode()).messages
    assert isinstance(message, JSONRPCRequest)
    assert (message.id, message.method) == (3, REFUSED)


@pytest.mark.parametrize(
    "text",
    ["x", "7", "{", "{}", "[]", "[1]", '{"id": 1.5, "method": "m"}', '{"id": true, "result": {}}'],
)
def test_what_is_no_message_is_none(text: str) -> None:
    found = said(text.encode())
    assert found.messages == []
    assert found.why_not is not None


LONG = "\\u00e4" * 20_000


@pytest.mark.parametrize("batch", ["%s", '[%s, 7, "x", null, [1], {"id": 2, "result": {}}]'])
def test_long_texts_are_left_in_what_is_answered_and_nowhere_else(batch: str) -> None:
    result = f'{{"content": [{{"text": "{LONG}"}}], "_meta": {{"{LONG}": ["{LONG}"]}}}}'
    answer, *_ = said(
        (batch % f'{{"jsonrpc": "2.0", "id": 1, "result": {result}}}').encode()
    ).messages
    assert isinstance(answer, JSONRPCResponse)
    assert type(answer.result) is Partly
    assert isinstance(answer.result["content"][0]["text"], LongText)
    assert finished(unfolded(answer.result)) == json.loads(result)

    for rest in (
        f'"id": 1, "method": "{LONG}", "params": {{"x": ["{LONG}"]}}',
        f'"method": "m", "params": {{"x": "{LONG}"}}',
        f'"id": 1, "error": {{"code": 1, "message": "{LONG}", "data": "{LONG}"}}',
        f'"id": "{LONG}", "result": {{}}',
    ):
        (message,) = said(f'{{"jsonrpc": "2.0", {rest}}}'.encode()).messages
        assert message.model_dump(exclude_unset=True) == {
            "jsonrpc": "2.0",
            **json.loads(f"{{{rest}}}"),
        }
    # What is no answer to anybody is told of with its beginning.
    (wrong,) = said(f'{{"jsonrpc": "1.0", "id": 1, "result": {result}}}'.encode()).messages
    assert isinstance(wrong, JSONRPCError)
    assert "ä" * 50 in wrong.error.message


VALUES = f"""[{f'["{"x" * 180}", null], ' * 1500}0]"""


def test_long_values_are_left_where_they_are_what_was_asked_for_and_nowhere_else() -> None:
    given = f'"structuredContent": {{"a": {VALUES}}}'
    for result in (
        f'{{"content": [], {given}}}',
        f'{{"status": "completed", "result": {{{given}, "content": []}}}}',
    ):
        (answer,) = said(f'{{"jsonrpc": "2.0", "id": 1, "result": {result}}}'.encode()).messages
        assert isinstance(answer, JSONRPCResponse)
        assert type(answer.result) is Partly
        holder = answer.result.get("result", answer.result)
        assert type(holder["structuredContent"]) is LongValue
        assert finished(unfolded(answer.result)) == json.loads(result)
    for rest in (
        f'"id": 1, "method": "m", "params": {{"content": [], {given}}}',
        f'"id": 1, "error": {{"code": 1, "message": "x", "data": {{{given}}}}}',
        f'"id": 1, "result": {{"content": {{{given}}}, "_meta": {{{given}}}}}',
    ):
        (message,) = said(f'{{"jsonrpc": "2.0", {rest}}}'.encode()).messages
        assert message.model_dump(exclude_unset=True) == {
            "jsonrpc": "2.0",
            **json.loads(f"{{{rest}}}"),
        }
    wrong = f'{{"jsonrpc": "1.0", "id": 1, "result": {{{given}}}}}'
    (message,) = said(wrong.encode()).messages
    assert isinstance(message, JSONRPCError)
    assert "'structuredContent': <LongValue of 2880" in message.error.message


def test_silence_is_no_mistake() -> None:
    assert said(b" \r") == Said([])


def test_of_a_list_all_is_taken_that_can_be() -> None:
    items: list[Any] = [
        '{"jsonrpc":"2.0","id":1,"result":{}}',
        "7",
        '{"jsonrpc":"2.0","method":"m"}',
    ]
    found = said(f"[{','.join(items)}]".encode())
    first, second = found.messages
    assert isinstance(first, JSONRPCResponse)
    assert isinstance(second, JSONRPCNotification)
    assert found.why_not == "is not a JSON-RPC 2.0 message"


@given(st.text(max_size=5), st.integers(1, 3))
def test_what_is_long_is_dumped_in_steps_to_the_same(value: str, depth: int) -> None:
    long: Any = [{value: n} for n in range(10_000)]
    for _ in range(depth):
        long = {"x": long, "y" + value: [value]}
    for message in (
        JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params=long),
        JSONRPCResponse(jsonrpc="2.0", id="x", result=long),
    ):
        steps = dump(message)
        assert sum(1 for _ in steps) >= 5
        assert json.loads(finished(dump(message))) == message.model_dump(exclude_unset=True)
