from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.json import jsonc
from emceepee_trio.model.json.edits import NoObject, put, take
from written import NAMES, written

NEW = {"command": "x", "args": ["a"]}
SAID = '{"command": "x", "args": ["a"]}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"s":{"a":1}}', f'{{"s":{{"a":1, "new": {SAID}}}}}'),
        ('{"s":{}}', f'{{"s":{{"new": {SAID}}}}}'),
        ('{"s": {"a": 1 /* one */}}', f'{{"s": {{"a": 1, "new": {SAID} /* one */}}}}'),
        ('{"s": {"a": 1, }}', f'{{"s": {{"a": 1, "new": {SAID} }}}}'),
        (
            '{\n\t"s": {\n\t\t"a": 1 // one\n\t\t// two\n\t}\n}',
            (
                '{\n\t"s": {\n\t\t"a": 1, // one\n\t\t// two\n\t\t"new": {\n\t\t\t"command": "x",\n'
                '\t\t\t"args": [\n\t\t\t\t"a"\n\t\t\t]\n\t\t}\n\t}\n}'
            ),
        ),
        (
            '{\r\n  "s": {\r\n    "a": "}",\r\n  },\r\n}\r\n',
            (
                '{\r\n  "s": {\r\n    "a": "}",\r\n    "new": {\r\n      "command": "x",\r\n'
                '      "args": [\r\n        "a"\r\n      ]\r\n    },\r\n  },\r\n}\r\n'
            ),
        ),
    ],
)
def test_what_is_added_looks_like_what_is_there_and_can_be_taken_out(
    before: str, after: str
) -> None:
    assert put(before, ["s"], {"new": NEW}) == after
    left = take(after, ["s"], "new")
    assert left == before or re.sub(r", }", " }", left) == re.sub(r", }", " }", before)


@pytest.mark.parametrize("before", ["", " \n", "{}", "{ }\n", "// note\n", "{\n  // note\n}"])
def test_where_nothing_is_all_of_it_is_made(before: str) -> None:
    after = put(before, ["s"], {"new": NEW})
    assert jsonc.loads(after) == {"s": {"new": NEW}}
    assert ("// note\n" in after) == ("// note\n" in before)


@pytest.mark.parametrize("before", ['{"s": []}', '{"s": null}', '{"s": "x"}', "[]", "3"])
def test_what_is_no_object_is_not_made_one(before: str) -> None:
    with pytest.raises(NoObject, match="is no object"):
        put(before, ["s"], {"new": NEW})


def test_a_value_that_is_there_is_replaced_in_its_place() -> None:
    before = '{\n  "s": {\n    "new": 1, // ours\n    "z": 2\n  }\n}'
    assert put(before, ["s"], {"new": 3}) == before.replace("1,", "3,")


def test_a_comment_that_ends_with_its_line_takes_nothing_in() -> None:
    before = '{"s": {"a": 1, // note\n"new": 2, "b": 3}}'
    assert jsonc.loads(take(before, ["s"], "new")) == {"s": {"a": 1, "b": 3}}
    assert jsonc.loads(take('{"a": 1, // note\n"new": 2}', [], "new")) == {"a": 1}


def test_of_a_name_that_stands_twice_the_last_is_meant() -> None:
    after = put('{"s": {"new": 1, "new": 2}}', ["s"], {"new": 3})
    assert after == '{"s": {"new": 1, "new": 3}}'


@given(written(), st.lists(NAMES, max_size=2), NAMES)
def test_nothing_but_what_is_asked_for_changes(text: str, path: list[str], name: str) -> None:
    wanted = jsonc.loads(text)
    try:
        after = put(text, path, {name: NEW})
    except NoObject:
        return
    inner = wanted
    for key in path:
        assert isinstance(inner, dict)
        inner = inner.setdefault(key, {})
    assert isinstance(inner, dict)
    was_there = name in inner
    inner[name] = NEW
    assert jsonc.loads(after) == wanted

    less = take(after, path, name)
    del inner[name]
    assert jsonc.loads(less) == wanted
    comments = re.compile(r"/\*.*?\*/|// l }")
    assert comments.findall(less) == comments.findall(text) or was_there
    assert put(after, path, {name: NEW}) == after


@given(written(), st.lists(NAMES, max_size=2), st.dictionaries(NAMES, st.just(NEW), max_size=4))
def test_several_at_once_are_what_one_after_the_other_is(
    text: str, path: list[str], entries: dict[str, object]
) -> None:
    try:
        after = put(text, path, entries)
    except NoObject:
        return
    one_by_one = text
    for name, value in entries.items():
        one_by_one = put(one_by_one, path, {name: value})
    assert not entries or jsonc.loads(after) == jsonc.loads(one_by_one)
    comments = re.compile(r"/\*.*?\*/|// l }")
    assert comments.findall(after) == comments.findall(one_by_one)


def test_what_is_added_together_looks_like_what_is_there() -> None:
    assert put('{"s": {"a": 1}}', ["s"], {"b": 2, "a": 3, "c": 4}) == (
        '{"s": {"a": 3, "b": 2, "c": 4}}'
    )
    assert put('{\n  "a": 1, // one\n}\n', [], {"b": 2, "c": 3}) == (
        '{\n  "a": 1, // one\n  "b": 2,\n  "c": 3,\n}\n'
    )
