"""What people are shown of text that a peer wrote."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.text.show import escaped, in_ascii


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, grüße, 日本語, ok 👍", "plain, grüße, 日本語, ok 👍"),
        ("C:\\new", "C:\\new"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\x1b[2J\x07\x00\x7f", "\\u001b[2J\\u0007\\u0000\\u007f"),
        ("\x9b2J\x85", "\\u009b2J\\u0085"),
        ("a\u202eb\u2066c\u2069", "a\\u202eb\\u2066c\\u2069"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("a\u200bb\u200dc\ufeffd\u00ade", "a\\u200bb\\u200dc\\ufeffd\\u00ade"),
        ("half \ud83d", "half \\ud83d"),
        ("tag \U000e0041", "tag \\udb40\\udc41"),
        ("filler \u3164", "filler \\u3164"),
    ],
)
def test_what_has_no_shape_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_newlines_stay_where_lines_are_meant() -> None:
    assert escaped("a\nb\r\n\x1b", lines=True) == "a\nb\\r\n\\u001b"


def test_no_character_that_moves_anything_is_left() -> None:
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    left = {unicodedata.category(character) for character in escaped(everything)}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert in_ascii(everything).replace("\n", "").isascii()


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3)))
def test_json_stays_the_same_json(value: object) -> None:
    for indent in (None, 2):
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        assert json.loads(escaped(text, lines=True)) == value
        assert json.loads(in_ascii(escaped(text, lines=True))) == value
