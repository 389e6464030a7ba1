"""``emceepee demo``: a tour, in which we are the client of an ``emceepee stdio --demo``."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp import Client

HELP = "a guided tour in ten seconds, with a built-in demo server"
WIDTH = 100
SHOWN = 3
"""Lines of an answer that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="print answers whole")


def run(options: argparse.Namespace) -> int:
    import trio

    status = 0
    try:
        trio.run(_tour, options.full)
    except* _WrongTurn as group:
        print(f"\nThe tour went wrong: {_said(group)}", file=sys.stderr)
        status = 1
    return status


class _WrongTurn(Exception):
    """Something did not do what the tour says it does."""


def _said(group: BaseExceptionGroup[_WrongTurn]) -> _WrongTurn:
    first = group.exceptions[0]
    return _said(first) if isinstance(first, BaseExceptionGroup) else first


async def _tour(full: bool) -> None:
    from mcp import Client, StdioServerParameters

    command = [sys.executable, "-m", "emceepee_trio", "stdio", "--demo"]
    print(f"$ {' '.join(['emceepee', *command[3:]])}\n")
    async with Client(StdioServerParameters(command=command[0], args=command[1:])) as client:
        guide = _Guide(client, full)
        await guide.walk()
    print("\nThat was all of it. Next: README.rst shows how to add emceepee to your own client.")


class _Guide:
    def __init__(self, client: Client, full: bool) -> None:
        self.client = client
        self.full = full
        self.step = 0

    async def walk(self) -> None:
        tools = (await self.client.list_tools()).tools
        self.say("A client connects once and finds the same tools, always")
        self.show(f"{len(tools)} tools: {', '.join(tool.name for tool in tools)}")

        self.say("The tools of all servers, found by pattern")
        await self.call("list_tools", server="demo", tool="^(echo|slow|ask_name)$")

        self.say("A call that is quick is just a call")
        await self.call(
            "execute_tool", server="demo", tool="echo", args={"text": "Hello, emceepee"}
        )

        self.say("A call that is slower than its timeout becomes a task instead of failing")
        slow = await self.call(
            "execute_tool", server="demo", tool="slow", args={"seconds": 2}, timeout_ms=300
        )

        self.say("Meanwhile a server asks the user something, in the middle of a call")
        asking = await self.call("execute_tool", server="demo", tool="ask_name", timeout_ms=1000)
        question = await self.question()
        self.show(f"it asks: {question['message']!r}")

        self.say("The answer goes back to the server, and its call goes on")
        await self.call(
            "respond_to_elicitation",
            request_id=question["requestId"],
            action="accept",
            content={"name": "Ada", "excited": True},
        )
        await self.call("get_task_result", task_id=_task_in(asking))

        self.say("One wait for everything: the slow call is done")
        await self.wait_until_done(_task_in(slow))
        await self.call("get_task_result", task_id=_task_in(slow))

    async def question(self) -> dict[str, Any]:
        """What the server asks, which on a busy machine may take a while."""
        for _ in range(10):
            answer = await self.client.call_tool("get_elicitations", {"server": "demo"})
            questions: list[dict[str, Any]] = json.loads(_texts(answer)[0])["elicitations"]
            if questions:
                return questions[0]
            await self.call("await_activity", timeout_ms=5000)
        raise _WrongTurn("the server did not ask")

    async def wait_until_done(self, task_id: str) -> None:
        status = "working"
        while status == "working":
            await self.call("await_activity", timeout_ms=5000)
            answer = await self.client.call_tool("get_task", {"task_id": task_id})
            status = json.loads(_texts(answer)[0])["task"]["status"]
        if status != "completed":
            raise _WrongTurn(f"the slow task is {status}")

    def say(self, what: str) -> None:
        self.step += 1
        print(f"\n{self.step}. {what}", flush=True)

    def show(self, answer: str) -> None:
        if not self.full:
            lines = textwrap.wrap(answer, WIDTH, break_on_hyphens=False) or [""]
            answer = "\n".join(lines[:SHOWN]) + (" …" if len(lines) > SHOWN else "")
        print(textwrap.indent(answer, "   "), flush=True)

    async def call(self, name: str, **arguments: Any) -> Any:
        shown = json.dumps(arguments, ensure_ascii=False)
        print(f"   -> {name} {shown}")
        answer = await self.client.call_tool(name, arguments)
        texts = _texts(answer)
        if answer.is_error:
            raise _WrongTurn(f"{name} answered {texts[0]}")
        self.show("\n".join(texts) if self.full else texts[0])
        return answer


def _texts(answer: Any) -> list[str]:
    return [block.text for block in answer.content if block.type == "text"]


def _task_in(answer: Any) -> str:
    for text in _texts(answer):
        if text.startswith('{"proxy_task"'):
            return str(json.loads(text)["proxy_task"]["task_id"])
    raise _WrongTurn("a slow call was not promoted")
