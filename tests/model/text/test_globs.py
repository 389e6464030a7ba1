"""What a glob of an allowlist stands for."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.text.globs import LONGEST, has_wildcard, matches


@pytest.mark.parametrize(
    ("glob", "word"),
    [
        ("", ""),
        ("x", "x"),
        ("*", ""),
        ("*", "/any/word: of all"),
        ("**", "--any-option=/too\n"),
        ("a*", "a"),
        ("a*", "a-b.c@1.2"),
        ("a*b*c", "abbcbc"),
        ("?", "x"),
        ("[ab]x", "bx"),
        ("[!ab]x", "cx"),
        ("[]]", "]"),
        ("[*]", "*"),
        ("[x]", "[x]"),
        ("[", "["),
        ("--port=*", "--port=80"),
        ("/srv/*/x", "/srv/a b/x"),
        ("/srv/**", "/srv/a/b"),
        ("/srv/**/x", "/srv/a/b/x"),
        ("*.x", "a.x"),
        ("grü*", "grüße"),
    ],
)
def test_it_is_meant(glob: str, word: str) -> None:
    assert matches(glob, word)


@pytest.mark.parametrize(
    ("glob", "word"),
    [
        ("", "x"),
        ("x", ""),
        ("x", "X"),
        ("x", "xx"),
        ("*", "-x"),
        ("*x", "-x"),
        ("?x", "-x"),
        ("[!a]x", "-x"),
        ("*x", ".x"),
        ("a*", "a/b"),
        ("a*", "a:b"),
        ("a*", "a\nb"),
        ("a*", "a\x9bb"),
        ("a*", "a\u202eb"),
        ("a?b", "a/b"),
        ("a[!x]b", "a/b"),
        ("a/*", "a/.."),
        ("a/*", "a/.ssh"),
        ("a=*", "a=.."),
        ("a=*", "a=-x"),
        ("[ab]", "c"),
        ("[*]", "x"),
        ("/srv/*/x", "/srv/a/b/x"),
        ("/srv/**", "/etc"),
        ("a*b", "a" * LONGEST + "b"),
    ],
)
def test_it_is_not_meant(glob: str, word: str) -> None:
    assert not matches(glob, word)


@given(st.text("ab*?[]!", max_size=8), st.text("ab", max_size=8))
def test_of_plain_letters_it_is_as_usual(glob: str, word: str) -> None:
    assert matches(glob, word) == fnmatchcase(word, glob)


@given(st.text("a*?[]/-.", max_size=8), st.text(max_size=8))
def test_it_never_takes_more_than_usual(glob: str, word: str) -> None:
    if matches(glob, word):
        assert glob == word or fnmatchcase(word, glob)


def test_many_stars_cost_no_more_than_their_number() -> None:
    assert not matches("*a" * 30 + "b", "a" * LONGEST)


@pytest.mark.parametrize("glob", ["*", "a?", "[ab]", "**", "x[!a]"])
def test_a_wildcard_is_seen(glob: str) -> None:
    assert has_wildcard(glob)
    assert not has_wildcard(glob.translate(str.maketrans("*?[", "...")))
