from __future__ import annotations

import copy
from typing import Any

import pytest

from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.native.places import in_entry, in_result, in_update


def native(uri: str) -> str:
    return f"git+{uri}"


LINK = {"type": "resource_link", "uri": "file:///x", "name": "x", "icons": [{"src": "https://i"}]}
EMBEDDED = {
    "type": "resource",
    "resource": {"uri": "file:///x", "text": "file:///x", "_meta": {"ui": {"domain": "d"}}},
    "annotations": {"priority": 1},
}
TEXT = {"type": "text", "text": "file:///x", "uri": "file:///x"}
META = {"ui": {"resourceUri": "ui://a", "visibility": ["app"]}, "ui/resourceUri": "ui://a", "k": 1}
META_NATIVE = {
    "ui": {"resourceUri": "git+ui://a", "visibility": ["app"]},
    "ui/resourceUri": "git+ui://a",
    "k": 1,
}


def with_native(block: dict[str, Any]) -> dict[str, Any]:
    block = copy.deepcopy(block)
    (block.get("resource") or block)["uri"] = "git+file:///x"
    return block


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({"uri": "file:///x", "name": "x"}, {"uri": "git+file:///x", "name": "x"}),
        ({"uriTemplate": "file:///{x}"}, {"uriTemplate": "git+file:///{x}"}),
        ({"name": "t", "_meta": META}, {"name": "t", "_meta": META_NATIVE}),
        (
            {"_meta": {"openai/outputTemplate": "ui://a"}},
            {"_meta": {"openai/outputTemplate": "git+ui://a"}},
        ),
    ],
)
def test_an_entry(entry: dict[str, Any], shown: dict[str, Any]) -> None:
    before = copy.deepcopy(entry)
    assert in_entry(entry, native) == shown
    assert entry == before


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "t", "inputSchema": {"properties": {"uri": {"default": "file:///x"}}}},
        {"_meta": {"ui": {"csp": {}}, "other": "ui://a"}},
        {"uri": 1, "_meta": []},
        {"_meta": {"ui": "ui://a", "ui/resourceUri": None}},
    ],
)
def test_where_there_is_none_nothing_is_copied(entry: dict[str, Any]) -> None:
    assert in_entry(entry, native) is entry


def test_the_result_of_a_call() -> None:
    said = {
        "content": [LINK, EMBEDDED, TEXT, "?", {"type": "resource", "resource": 1}],
        "structuredContent": {"uri": "file:///x"},
        "_meta": META,
        "isError": False,
    }
    before = copy.deepcopy(said)
    others = [TEXT, "?", {"type": "resource", "resource": 1}]
    assert finished(in_result(said, native)) == {
        **said,
        "content": [with_native(LINK), with_native(EMBEDDED), *others],
        "_meta": META_NATIVE,
    }
    assert said == before


def test_a_resource() -> None:
    said = {"contents": [{"uri": "file:///x", "text": "", "_meta": META}, 1], "ttlMs": 1}
    assert finished(in_result(said, native)) == {
        "contents": [{"uri": "git+file:///x", "text": "", "_meta": META_NATIVE}, 1],
        "ttlMs": 1,
    }


def test_a_prompt() -> None:
    many = {"type": "tool_result", "toolUseId": "1", "content": [LINK]}
    said = {
        "messages": [
            {"role": "user", "content": EMBEDDED},
            {"role": "user", "content": LINK},
            {"role": "assistant", "content": [TEXT, many]},
            {"role": "user"},
            "?",
        ]
    }
    shown = finished(in_result(said, native))["messages"]
    assert [each["content"] for each in shown[:2]] == [with_native(EMBEDDED), with_native(LINK)]
    assert shown[2]["content"] == [TEXT, {**many, "content": [with_native(LINK)]}]
    assert shown[3:] == said["messages"][3:]


def test_a_change() -> None:
    params = {"uri": "file:///x", "_meta": {"k": 1}}
    assert in_update(params, native) == {"uri": "git+file:///x", "_meta": {"k": 1}}
