"""Patterns that peers send: none takes long before it is matched."""

from __future__ import annotations

import time

import pytest

from emceepee_trio.model.text.patterns import Explosive, compiled


@pytest.mark.parametrize(
    "pattern",
    [
        *("a{100000000}", "a{100000000,}", "a{1000000,2000000}?", "(a{1000}){1000}", "[ab]{9999}"),
        *("(a){9999}", "((a{100}){100}){100}", r"[[:alpha:]{9999}", "(?:a{99}(?#b)){999}"),
    ],
)
def test_what_is_written_out_very_often_is_not_compiled(pattern: str) -> None:
    began = time.thread_time()
    with pytest.raises(Explosive, match="it repeats more than 5000 things"):
        compiled(pattern)
    assert time.thread_time() - began < 0.01


@pytest.mark.parametrize(
    "pattern",
    [
        *("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "a{0,100000}", "a{4000}", "(a{1,99}){1,99}"),
        *("([a-z]{1,63}\\.){1,8}", "y{2}"),
    ],
)
def test_others_are(pattern: str) -> None:
    began = time.thread_time()
    assert compiled(pattern).pattern == pattern
    assert time.thread_time() - began < 0.05
