"""Who waits for what is not taken is found in it."""

from __future__ import annotations

from typing import Any

import pytest

from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.json.long.outlines import outlines

DEEP = b"[" * 5000 + b"]" * 5000
FIVE = {"id": 5, "result": None}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b'{"jsonrpc": "2.0", "id": 5, "result": ' + DEEP + b"}", [FIVE]),
        (b'{"result": ' + DEEP + b', "jsonrpc": "2.0", "id" : 5}', [FIVE]),
        (b'{"result": {"x": "caf\xe9"}, "id": 5.0}', [FIVE]),
        (b'{"result": {"x": "caf\xe9"}, "id": 5e0}', [FIVE]),
        (b'{"result": {"x": "caf\xe9"}, "id": 0.5E+1}', [FIVE]),
        (b'{"result": {"content": [}, "id": 5}', [{"result": None}]),
        (b'{"id": 5, "result": {"content": [}, "id": 6}', [FIVE]),
        (
            b'{"result": {"id": 6, "x": "\\"id\\":7"}, "id": "five"}',
            [{"id": "five", "result": None}],
        ),
        (b'{"result": "\\\\", "id": 5, "x": ' + DEEP, [FIVE]),
        (b'{"id": 1.5, "error": {"code": 1, ' + DEEP, [{"id": None, "error": None}]),
        (b'{"id": ' + b"1" * 5000 + b', "error": {}}', [{"id": None, "error": None}]),
        (b'{"id": 05, "error": ' + DEEP, [{"id": None, "error": None}]),
        (b'{"method": "m", "params": ' + DEEP + b"}", [{"method": "m"}]),
        (b'{"x": "' + b"y" * 100_000 + b'", "id": 5, "result": {}', [FIVE]),
        (
            b'[{"id": 5, "result": {}}, {"method": "n", "params": '
            + DEEP
            + b'}, 7, {"x": 1, "error": {}}]',
            [FIVE, {"method": "n"}, {"error": None}],
        ),
        (b'\xef\xbb\xbf[{"id": 5, "result": ' + DEEP + b"}]", [FIVE]),
        (b' \n[{"id": 5, "result": ' + DEEP + b"}]", [FIVE]),
        (b"[[" + b'{"id": 5, "result": {}}]]', []),
        (DEEP, []),
        (b"", []),
        (b"{", []),
        (b"\xff" * 100, []),
    ],
)
def test_who_waits_for_what_is_not_taken_is_found(text: bytes, found: list[Any]) -> None:
    assert finished(outlines(text)) == found


def test_not_all_of_a_long_list_are_found() -> None:
    text = b"[" + b",".join(b'{"id": %d, "result": {}}' % n for n in range(10_000)) + b"]"
    assert finished(outlines(text)) == [{"id": n, "result": None} for n in range(100)]
