"""Resources of servers, and our own."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from emceepee_client import Emceepee, Open, refusal
from fake_backends import Journal, demo, raw
from like import Like

DIAGRAMS = {
    "server": "emceepee",
    "uri": "emceepee://diagrams",
    "name": "diagrams",
    "description": Like(".+"),
    "mimeType": "application/json",
}
COUNTER = "demo://counter"


async def test_resources_are_listed_as_the_servers_describe_them(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era), "off": raw()}) as emceepee:
        said = await emceepee.says("list_resources", server="raw")
        names = ["text", "blob", "several", "odd", "empty"]
        listed = [
            {"server": "raw", "uri": f"raw://{name}", "name": name, "x-vendor": 1} for name in names
        ]
        assert said == {"resources": listed}
        everywhere = await emceepee.says("list_resources")
        assert list(everywhere) == ["resources"]
        assert everywhere["resources"][:5] == listed
        assert everywhere["resources"][-1] == DIAGRAMS
        assert len(everywhere["resources"]) == 11
        assert await emceepee.says("list_resources", server="emceepee") == {"resources": [DIAGRAMS]}
        said = await emceepee.says("list_resource_templates", server="raw")
        template = {"server": "raw", "uriTemplate": "raw://item/{id}", "name": "item"}
        assert said == {"resource_templates": [template | {"x-vendor": 1}]}
        assert await emceepee.says("list_resource_templates", server="emceepee") == {
            "resource_templates": []
        }


async def test_every_page_of_a_list_is_fetched(connect: Open) -> None:
    flags = ("--resources", 25, "--templates", 12, "--prompts", 31, "--page", 10)
    async with connect({"raw": raw(*flags)}) as emceepee:
        for tool, key, count in (
            ("list_resources", "resources", 25),
            ("list_resource_templates", "resource_templates", 12),
            ("list_prompts", "prompts", 31),
        ):
            entries = (await emceepee.says(tool, server="raw"))[key]
            assert len({entry["name"] for entry in entries}) == len(entries) == count


async def test_a_server_that_knows_none_has_none(connect: Open, journal: Journal) -> None:
    flags = [
        flag for name in ("resources", "prompts", "tools") for flag in ("--no-capability", name)
    ]
    async with connect({"raw": raw(*flags, *journal.flags)}) as emceepee:
        for tool, key in (
            ("list_resources", "resources"),
            ("list_resource_templates", "resource_templates"),
            ("list_prompts", "prompts"),
        ):
            assert await emceepee.says(tool, server="raw") == {key: []}
        assert await emceepee.says("list_tools") == {
            "tools": [],
            "hint": "no server has any tools",
            "detail": "full",
        }
        # It is not even asked.
        assert [e for e in journal.entries() if e.get("method", "").endswith("/list")] == []
        error = await emceepee.fails("read_resource", server="raw", uri="raw://text")
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert error["details"]["code"] == -32601


async def test_resources_are_read_as_they_come(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    text = {"mimeType": "text/plain", "x-vendor": 1}
    blob = {
        "mimeType": "application/octet-stream",
        "blob": base64.b64encode(bytes(range(256))).decode(),
    }
    contents: dict[str, list[dict[str, Any]]] = {
        "raw://text": [text | {"text": "text of raw://text"}],
        "raw://blob": [blob],
        "raw://several": [text | {"text": "text of raw://several"}, blob],
        "raw://odd": [{"pixels": [1, 2, 3], "x-vendor": {"neither": "text nor blob"}}],
        "raw://empty": [],
        "raw://item/7?x=y#z": [text | {"text": "text of raw://item/7?x=y#z"}],
    }
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        for uri, items in contents.items():
            answer = await emceepee.call("read_resource", server="raw", uri=uri)
            assert answer.result["isError"] is False
            assert answer.content == [
                {"type": "resource", "resource": {"uri": uri, **item}} for item in items
            ]


async def test_a_resource_that_is_not_there_is_an_error(
    connect: Open, its_era: tuple[str, ...]
) -> None:
    """Each era has its own code for it."""
    async with connect({"raw": raw(*its_era), "demo": demo()}) as emceepee:
        error = await emceepee.fails("read_resource", server="raw", uri="raw://nothing")
        assert error == {
            "code": "TOOL_ERR_NOT_FOUND",
            "message": Like("server 'raw': resource not found; list_resources .*"),
            "details": {
                "code": -32602 if its_era else -32002,
                "message": "resource not found",
                "data": {"uri": "raw://nothing"},
            },
        }
        error = await emceepee.fails("read_resource", server="demo", uri="demo://files/none")
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        error = await emceepee.fails("read_resource", server="emceepee", uri="emceepee://none")
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert "emceepee://diagrams" in error["message"]


async def test_the_diagrams_are_read_by_tool_and_natively(connect_as_either: Open) -> None:
    async with connect_as_either() as emceepee:
        (block,) = (
            await emceepee.call("read_resource", server="emceepee", uri="emceepee://diagrams")
        ).content
        resource = block["resource"]
        assert block == {
            "type": "resource",
            "resource": {
                "uri": "emceepee://diagrams",
                "mimeType": "application/json",
                "text": Like(".+"),
            },
        }
        said = json.loads(resource["text"])
        assert list(said) == ["diagrams"]
        assert [list(diagram) for diagram in said["diagrams"]] == [
            ["name", "description", "mermaid"]
        ] * 5
        assert [diagram["name"] for diagram in said["diagrams"]] == [
            "proxy_task_states",
            "pending_elicitation_states",
            "pending_sampling_states",
            "tool_call_lifecycle",
            "entity_relationships",
        ]
        for diagram in said["diagrams"]:
            assert diagram["mermaid"].startswith(("stateDiagram-v2\n", "flowchart "))
            assert diagram["description"]
        tasks = said["diagrams"][0]["mermaid"]
        assert all(f"working --> {end} : " in tasks for end in ("completed", "failed", "expired"))
        result = await emceepee.request("resources/list")
        assert result["resources"] == [{k: v for k, v in DIAGRAMS.items() if k != "server"}]
        read = await emceepee.request("resources/read", {"uri": "emceepee://diagrams"})
        assert read["contents"] == [resource]
        typed = await emceepee.client.read_resource("emceepee://diagrams")
        assert typed.contents[0].mime_type == "application/json"
        error = await refusal(emceepee, "resources/read", {"uri": "emceepee://none"})
        assert error["code"] == (-32602 if emceepee.era == "modern" else -32002)
        assert error["data"] == {"uri": "emceepee://none"}


async def bumped(emceepee: Emceepee) -> int:
    """How often the counter's subscriber was told, once the server has answered what follows."""
    await emceepee.execute("demo", "bump")
    await emceepee.execute("demo", "echo", {"text": ""})
    said = await emceepee.says("get_notifications", server="demo")
    updates = [
        entry
        for entry in said["notifications"]
        if entry["method"] == "notifications/resources/updated"
    ]
    assert all(entry["params"]["uri"] == COUNTER for entry in updates)
    return len(updates)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_resource_is_followed_until_it_is_not(connect: Open, era: str) -> None:
    which = {"server": "demo", "uri": COUNTER}
    async with connect({"demo": demo() | {"era": era}}) as emceepee:
        assert await bumped(emceepee) == 0
        for _ in range(2):  # twice is once
            assert await emceepee.says("subscribe_resource", **which) == {"subscribed": COUNTER}
        assert await bumped(emceepee) == 1
        updated = await emceepee.event("notification", method="notifications/resources/updated")
        assert updated["server"] == "demo"
        assert updated["data"]["params"]["uri"] == COUNTER
        # It survives a new connection.
        await emceepee.says("reconnect_server", name="demo")
        await emceepee.says("get_notifications")
        if era == "handshake":
            await emceepee.says("list_prompts", server="demo")  # behind what restores it
        told = 0
        while not told:
            told = await bumped(emceepee)
        assert await emceepee.says("unsubscribe_resource", **which) == {"unsubscribed": COUNTER}
        assert await bumped(emceepee) == 0
        error = await emceepee.fails("unsubscribe_resource", **which)
        assert error["code"] == "TOOL_ERR_NOT_FOUND"


async def test_our_own_resource_never_changes(connect: Open) -> None:
    async with connect() as emceepee:
        for tool in "subscribe_resource", "unsubscribe_resource":
            error = await emceepee.fails(tool, server="emceepee", uri="emceepee://diagrams")
            assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"


async def test_a_subscription_is_told_to_the_server_once(connect: Open, journal: Journal) -> None:
    which = {"server": "raw", "uri": "raw://text"}
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        await emceepee.connected("raw")
        for _ in range(2):
            await emceepee.says("subscribe_resource", **which)
        await emceepee.says("reconnect_server", name="raw")
        await journal.wait_for_method("resources/subscribe", 2)
        await emceepee.says("unsubscribe_resource", **which)
        for method, count in (("resources/subscribe", 2), ("resources/unsubscribe", 1)):
            told = journal.of(method)
            assert [request["params"]["uri"] for request in told] == ["raw://text"] * count
