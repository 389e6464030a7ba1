"""Servers that others wrote, with a client of the TypeScript SDK: directly, and through us."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cache
from typing import Any

import pytest

from outside import Npm
from renaming import renamed
from served import serve

Json = dict[str, Any]
Step = tuple[str, Json]
Message = tuple[str, Json]

LISTS: list[Step] = [("listTools", {}), ("listResources", {}), ("listResourceTemplates", {})]
PROMPTS: list[Step] = [("listPrompts", {})]


def call(name: str, /, **arguments: Any) -> Step:
    return "callTool", {"name": name, "arguments": arguments}


def read(uri: str) -> Step:
    return "readResource", {"uri": uri}


DOCUMENT = "demo://resource/static/document/features.md"
EVERYTHING: list[Step] = [
    *LISTS,
    *PROMPTS,
    call("echo", message="grüße 🦑"),
    call("echo"),  # without what it needs
    call("get-annotated-message", messageType="error", includeImage=True),
    call("get-resource-links", count=3),
    call("get-resource-reference", resourceType="Text", resourceId=1),
    call("get-structured-content", location="New York"),
    call("get-sum", a=2, b=3),
    call("get-tiny-image"),
    call("trigger-long-running-operation", duration=0.2, steps=2),
    call("trigger-elicitation-request"),
    call("trigger-sampling-request", prompt="What?", maxTokens=10),
    read(DOCUMENT),
    read("demo://resource/dynamic/text/7"),
    read("demo://nothing"),
    ("getPrompt", {"name": "simple-prompt"}),
    ("getPrompt", {"name": "args-prompt", "arguments": {"city": "Kyōto"}}),
    (
        "getPrompt",
        {"name": "resource-prompt", "arguments": {"resourceType": "Text", "resourceId": "1"}},
    ),
    ("getPrompt", {"name": "no-such-prompt"}),
    (
        "complete",
        {
            "ref": {"type": "ref/prompt", "name": "completable-prompt"},
            "argument": {"name": "department", "value": "E"},
        },
    ),
    ("subscribeResource", {"uri": DOCUMENT}),
    ("unsubscribeResource", {"uri": DOCUMENT}),
    ("ping", {}),
]
NEW_YEAR = {"source_timezone": "Asia/Tokyo", "time": "00:30", "target_timezone": "Asia/Kolkata"}
TIME: list[Step] = [
    *LISTS[:1],
    call("convert_time", **NEW_YEAR),
    call("convert_time", **NEW_YEAR | {"time": "25:00"}),
    call("get_current_time", timezone="Nowhere/Else"),
]
APPS: dict[str, tuple[str, list[Step]]] = {
    "basic": ("mcp-server-basic-vanillajs", [call("get-time"), read("ui://get-time/mcp-app.html")]),
    "map": (
        "mcp-map-server",
        [
            call("show-map", west=0, south=0, east=1, north=1, label="here"),
            read("ui://cesium-map/mcp-app.html"),
        ],
    ),
    "budget": (
        "mcp-budget-allocator-server",
        [call("get-budget-data"), read("ui://budget-allocator/mcp-app.html")],
    ),
}
"""Examples of MCP Apps."""
STEPS = {"everything": EVERYTHING, "time": TIME} | {
    name: [*LISTS[:2], *steps] for name, (_, steps) in APPS.items()
}


@pytest.fixture(scope="module")
def commands(npm: Npm, time_server: Future[str]) -> dict[str, list[str]]:
    return {
        "everything": npm.program("mcp-server-everything"),
        "time": [time_server.result(), "-m", "mcp_server_time", "--local-timezone", "UTC"],
        **{name: [*npm.program(program), "--stdio"] for name, (program, _) in APPS.items()},
    }


@pytest.fixture(scope="module")
def ours(commands: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    servers = {
        name: {"command": program, "args": args} for name, (program, *args) in commands.items()
    }
    settings: Json = {"mcpServers": servers, "context": "off", "native": {"max_name": 128}}
    config.write_text(json.dumps(settings | {"results": {"inline_bytes": 0}}), "utf-8")
    with serve(folder, "--no-auth", "--config", str(config)) as daemon:
        yield daemon.url


def tape_of(npm: Npm, steps: list[Step], *target: str) -> list[Message]:
    tape: list[Message] = npm.drive("tape.mjs", "legacy", json.dumps(steps), *target)["tape"]
    return [(way, message) for way, message in tape if not is_of_the_start(message)]


@pytest.fixture(scope="module")
def direct(npm: Npm, commands: dict[str, list[str]]) -> Callable[[str], list[Message]]:
    @cache
    def tape(server: str) -> list[Message]:
        return normal(tape_of(npm, STEPS[server], *commands[server]))

    return tape


Direct = Callable[[str], list[Message]]


def is_of_the_start(message: Json) -> bool:
    """When a server tells of its lists and asks for roots after the handshake is its own affair."""
    method, params = message.get("method", ""), message.get("params", {})
    is_told = str(params.get("data")).startswith("Roots updated")
    changed = method.endswith("/list_changed")
    return is_told or changed or method == "roots/list" or "roots" in message.get("result", {})


def is_beside(message: Json) -> bool:
    """What is said of servers natively: logs where they are asked for, and why a client waits."""
    is_filler = str(message.get("params", {}).get("message")).endswith(" is starting")
    return is_filler or message.get("method") == "notifications/message"


def normal(tape: list[Message]) -> list[Message]:
    """Ids that a server makes up, and times, are never the same."""
    asked = [m["id"] for way, m in tape if way == "<-" and "method" in m and "id" in m]
    found: list[Message] = []
    for way, message in tape:
        is_about_question = (way == "<-") == ("method" in message)
        if "id" in message and is_about_question:
            message = message | {"id": f"question {asked.index(message['id'])}"}
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)", "THEN", json.dumps(message))
        text = re.sub(r"\d{1,2}:\d\d:\d\d [AP]M", "THEN", text)
        text = re.sub(r"[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}", "UUID", text)
        found.append((way, json.loads(text)))
    return found


@pytest.mark.parametrize("server", STEPS)
def test_as_it_is_it_is_the_same_message_by_message(
    npm: Npm, direct: Direct, ours: str, server: str
) -> None:
    assert len(direct(server)) >= 2 * len(STEPS[server])
    url = f"{ours.removesuffix('/mcp')}/servers/{server}/mcp"
    assert normal(tape_of(npm, STEPS[server], url)) == direct(server)


@pytest.mark.parametrize("server", STEPS)
def test_natively_it_is_the_same_but_for_names(
    npm: Npm, direct: Direct, ours: str, server: str
) -> None:
    with renamed(f"{ours}?view=native", server) as url:
        tape = normal(tape_of(npm, STEPS[server], url))
    # Who it is that answers is said by the second message, with the instructions.
    found, known = (
        [each for each in said[:1] + said[2:] if not is_beside(each[1])]
        for said in (tape, direct(server))
    )
    assert found == known


@pytest.mark.parametrize("view", ["tools", "core", "code"])
@pytest.mark.parametrize("server", ["everything", "time"])
def test_by_our_tools_its_results_are_the_same(
    npm: Npm, direct: Direct, ours: str, server: str, view: str
) -> None:
    calls = [each for method, each in STEPS[server] if method == "callTool"]
    steps = [
        call("execute_tool", server=server, tool=each["name"], args=each["arguments"])
        for each in calls
    ]
    if view == "code":  # where scripts make them
        scripts = [SCRIPT.format(server, each["name"], each["arguments"]) for each in calls]
        steps += [call("codemode_execute", code=script) for script in scripts]
    found = results_of(normal(tape_of(npm, steps, f"{ours}?view={view}")))
    known = results_of(direct(server))
    assert found[: len(known)] == known
    given = [each["structuredContent"]["result"] for each in found[len(known) :]]
    assert given == ([said_by(each) for each in known] if view == "code" else [])


SCRIPT = """
try:
    said = await call_tool({!r}, {!r}, {!r})
except ToolError as error:
    said = "failed: " + str(error)
said
"""


def said_by(result: Json) -> Any:
    """What a script has of it: data if there is any, else text, else the blocks."""
    blocks = result["content"]
    texts = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    if result.get("isError"):
        return f"failed: {texts}"
    if "structuredContent" in result:
        return result["structuredContent"]
    if any(block["type"] != "text" for block in blocks):
        return [block.get("resource", block) for block in blocks]
    try:
        return json.loads(texts)
    except ValueError:
        return texts


def results_of(tape: list[Message]) -> list[Json]:
    """But for the envelope of the era in which we speak to the server."""
    results = [m["result"] for way, m in tape if way == "<-" and "content" in m.get("result", {})]
    return [{k: v for k, v in each.items() if k not in ("resultType", "_meta")} for each in results]
