"""What two texts have in common."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.search.words import LONGEST, folded, squeezed, terms, terms_of_name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("addresses", "geocode_address"),
        ("readTextFile", "read-text-file"),
        ("HTTPServer2", "http server 2"),
        ("Größe", "GROSSE"),
        ("café", "CAFE"),
        ("дороги", "дорога"),
        ("κύματα", "ΚΎΜΑΤΑ"),
        ("ｗｉｄｅ", "wide"),
    ],
)
def test_the_same_words_are_the_same_terms(one: str, other: str) -> None:
    assert set(terms(one)) & set(terms(other)), (terms(one), terms(other))


def test_names_are_taken_apart() -> None:
    assert terms("readTextFile") == terms("read_text_file") == ["read", "text", "file"]
    assert terms("getHTTPResponse") == ["get", "http", "respons"]
    assert terms_of_name("mind_map") == ["mind", "map", "mindmap"]


def test_scripts_without_spaces_are_taken_by_two() -> None:
    assert terms("查询余票") == ["查询", "询余", "余票"]
    assert terms("票") == ["票"]
    assert set(terms("ตลาดหุ้น")) & set(terms("หุ้น"))


def test_words_that_say_nothing_are_left_out() -> None:
    assert terms("use this to get all of the files") == ["get", "file"]


@pytest.mark.parametrize("name", ["read_text_file", "readTextFile", "Read Text-File"])
def test_a_name_is_squeezed_to_its_letters(name: str) -> None:
    assert squeezed(name) == "readtextfile"


@given(st.text() | st.text(st.characters()))
def test_any_text_has_terms_of_bounded_length(text: str) -> None:
    for term in terms(text) + terms_of_name(text):
        assert 0 < len(term) <= 2 * LONGEST + 20


@pytest.mark.parametrize("marks", ["\u0301", "\u0316\u0301", "\u0301" * 2000 + "\u0316"])
def test_very_many_accents_on_one_letter_take_no_time(marks: str) -> None:
    began = time.thread_time()
    assert terms(f"cafe{marks * (4000 // len(marks))} au lait")[:2] == ["cafe", "au"]
    assert time.thread_time() - began < 0.01


def test_signs_that_stand_for_many_are_not_all_looked_at() -> None:
    assert len(folded("\ufdfa" * 1000)) <= 3000
