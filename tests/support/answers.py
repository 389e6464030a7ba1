"""What each of our tools answers, for the reference: one session that calls them all.

``python tests/support/answers.py`` writes ``docs/generated/results.json`` anew; then generate.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import trio

import time_server
from emceepee_client import Answer, Emceepee, open_emceepee
from fake_backends import demo

FILE = Path(__file__).parents[2] / "docs" / "generated" / "results.json"
LONG = "\n".join(f"line {n} of a long text" for n in range(2000))


async def collect(folder: Path) -> dict[str, Any]:
    async with open_emceepee(folder, {"demo": demo()}) as emceepee:
        found = await _all(emceepee)
    text = json.dumps(found)
    for ours, theirs in ((str(folder), "/home/ada"), (sys.executable, "/usr/bin/python3")):
        text = text.replace(json.dumps(ours)[1:-1], theirs)
    text = re.sub(r'"[^"]*/time_server\.py"', '"/home/ada/time_server.py"', text)
    text = re.sub(r'/usr/bin/python3 [^"]*/time_server\.py', "/home/ada/time_server.py", text)
    anew: dict[str, Any] = json.loads(text)
    return anew


async def _all(emceepee: Emceepee) -> dict[str, Any]:
    found: dict[str, Any] = {}
    of_demo = {"server": "demo"}

    async def call(tool: str, /, **arguments: Any) -> Any:
        answer = await emceepee.call(tool, **arguments)
        assert not answer.result.get("isError"), answer.texts
        found[tool] = said_by(answer)
        return found[tool]

    async def promoted(tool: str, **args: Any) -> str:
        answer = await emceepee.call(
            "execute_tool", server="demo", tool=tool, args=args, timeout_ms=0
        )
        task: str = said_by(answer)["proxy_task"]["task_id"]
        return task

    async def asked(kind: str, key: str) -> str:
        while not (open_ := (await call(kind))[key]):
            await emceepee.call("await_activity", timeout_ms=50)
        request: str = open_[0]["requestId"]
        return request

    await call("list_tools", **of_demo, tool="^add$")
    await call("codemode_search", query="add two numbers", limit=2)
    await call("list_servers")
    await call("get_server_status", **of_demo)
    await call("call_read", **of_demo, tool="echo", args={"text": "hello"})
    preview = said_by(
        await emceepee.call("execute_tool", **of_demo, tool="echo", args={"text": LONG})
    )
    await call("read_result", id=preview["result"], lines=[1, 2])
    await call("list_resources", **of_demo)
    await call("list_resource_templates", **of_demo)
    await call("read_resource", **of_demo, uri="demo://counter")
    await call("subscribe_resource", **of_demo, uri="demo://counter")
    await emceepee.call("execute_tool", **of_demo, tool="bump")
    await call("unsubscribe_resource", **of_demo, uri="demo://counter")
    await call("get_notifications")
    await call("list_prompts", **of_demo)
    await call("get_prompt", **of_demo, name="summarize", arguments={"topic": "trio"})
    style = {"name": "style", "value": "f"}
    await call("complete", **of_demo, ref={"prompt": "summarize"}, argument=style)
    await emceepee.call("execute_tool", **of_demo, tool="log", args={"message": "hello"})
    await call("set_log_level", **of_demo, level="info")
    await call("get_logs", **of_demo, limit=1)
    await call("set_roots", roots=[{"uri": "file:///srv/notes", "name": "notes"}])
    await call("get_roots")
    command = {"command": sys.executable, "args": [time_server.__file__]}
    await call("add_server", name="time", **command)
    await call("remove_server", name="time")
    slow = await promoted("slow", seconds=60)
    await call("execute_tool", **of_demo, tool="slow", args={"seconds": 60}, timeout_ms=0)
    await call("list_tasks")
    await call("get_task", task_id=slow)
    await call("cancel_task", task_id=slow)
    task = await promoted("ask_name")
    request = await asked("get_elicitations", "elicitations")
    form = {"name": "Ada", "excited": True}
    await call("respond_to_elicitation", request_id=request, action="accept", content=form)
    await call("get_task_result", task_id=task)
    await promoted("ask_name")
    request = await asked("get_elicitations", "elicitations")
    await call("cancel_elicitation_request", request_id=request, reason="nobody is here")
    for tool, more in (
        ("cancel_sampling_request", {"reason": "not now"}),
        ("respond_to_sampling", {"model": "a-model", "content": "A haiku."}),
    ):
        await promoted("ask_model", prompt="Write a haiku.")
        request = await asked("get_sampling_requests", "sampling_requests")
        await call(tool, request_id=request, **more)
    await call("set_timer", duration_ms=60_000, message="look at the build")
    await call("list_timers")
    timer = found["set_timer"]["timer"]["timer_id"]
    await call("get_timer", timer_id=timer)
    await call("delete_timer", timer_id=timer)
    await call("codemode_execute", code="(await servers.demo.add(a=1, b=2))['sum']")
    await call("reconnect_server", name="demo")
    await promoted("slow", seconds=0.1)
    await call("await_activity", timeout_ms=5000)
    return found


def said_by(answer: Answer) -> Any:
    """The JSON that it says, or its blocks where that is what a server has said."""
    for block in answer.content:
        if block.get("type") == "text" and block["text"].startswith("{"):
            return json.loads(block["text"])
    return {"content": list(answer.content)}


def paths(value: Any, depth: int, at: str = "") -> Iterator[str]:
    """The names of all that is in it, up to a *depth*."""
    if isinstance(value, dict) and depth:
        for name, each in value.items():
            yield f"{at}.{name}"
            yield from paths(each, depth - 1, f"{at}.{name}")
    elif isinstance(value, list):
        for each in value:
            yield from paths(each, depth, f"{at}[]")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        said = trio.run(collect, Path(scratch))
    FILE.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", "utf-8")
