"""``emceepee demo``: a tour, in which we are the client of a daemon of our own."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from .. import logs
from .common.output import complain, say
from .common.terminal import working

if TYPE_CHECKING:
    import trio
    from mcp import Client

WIDTH = 100
SHOWN = 3
"""Lines of an answer that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="print answers whole")


def run(options: argparse.Namespace) -> int:
    import trio

    logs.configure("text", "warn", alone=True)
    status = 0
    try:
        trio.run(_tour, options.full)
    except* _WrongTurn as group:
        complain(f"The tour went wrong: {_said(group)}")
        status = 1
    return status


class _WrongTurn(Exception):
    """Something did not do what the tour says it does."""


def _said(group: BaseExceptionGroup[_WrongTurn]) -> _WrongTurn:
    first = group.exceptions[0]
    return _said(first) if isinstance(first, BaseExceptionGroup) else first


async def _tour(full: bool) -> None:
    import httpx2
    import trio
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:

            async def end_on_signal() -> None:
                async for number in signals:
                    # Else the daemon would stay.
                    raise _WrongTurn(f"ended by {signal.Signals(number).name}")

            nursery.start_soon(end_on_signal)
            async with _daemon() as (url, token):
                headers = {"Authorization": f"Bearer {token}"}
                async with httpx2.AsyncClient(
                    headers=headers, timeout=None, trust_env=False
                ) as http:
                    transport = streamable_http_client(f"{url}?session=tour", http_client=http)
                    async with Client(transport) as client:
                        await _Guide(client, full).walk()
            nursery.cancel_scope.cancel("end of the tour")
    say(
        "\nThat was all of it. Next: `emceepee import` takes over the servers of your clients,\n"
        "and `emceepee connect` adds emceepee to them."
    )


@asynccontextmanager
async def _daemon() -> AsyncGenerator[tuple[str, str]]:
    """Where a new daemon listens, and its token. Whatever it keeps is gone when the block is left.

    It is our child: the configuration and the token of the user are none of its business.
    """
    import trio

    from ..web.token_file import MINTED, VARIABLE, read_token

    with TemporaryDirectory(prefix="emceepee-demo-") as folder:
        ours = (VARIABLE, "PORT", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
        environment = {name: value for name, value in os.environ.items() if name not in ours}
        shown = ["serve", "--demo"]
        asked = [*shown, "--bind", "127.0.0.1:0", "--state-dir", folder, "--log-level", "error"]
        start = partial(
            trio.run_process,
            [sys.executable, "-m", "emceepee_trio", *asked],
            env=environment | {"XDG_CONFIG_HOME": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        say(f"$ {' '.join(['emceepee', *shown])}")
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(start)
            url = await _endpoint(process)
            say(f"  listens on {url}, and wants the token that it has just made")
            yield url, read_token(Path(folder, MINTED))[0]
            process.terminate()


async def _endpoint(process: trio.Process) -> str:
    said = b""
    assert process.stdout is not None
    while chunk := await process.stdout.receive_some():
        said += chunk
        if found := re.search(rb"(http://\S+/mcp)\n", said):
            return found[1].decode()
    raise _WrongTurn("the daemon did not start")


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
        detail = "full" if self.full else "summary"
        with working("starting the demo server"):
            await self.wait_until_listed()
        await self.call("list_tools", server="demo", tool="^(echo|slow|ask_name)$", detail=detail)

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

    async def wait_until_listed(self) -> None:
        """The server may take longer to start, on a busy machine, than a list waits for it."""
        for _ in range(12):
            answer = await self.client.call_tool("list_tools", {"server": "demo"})
            if not json.loads(_texts(answer)[0]).get("errors"):
                return
        raise _WrongTurn("the server did not start")

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
        say(f"\n{self.step}. {what}")

    def show(self, answer: str) -> None:
        if not self.full:
            lines = textwrap.wrap(_spaced(answer), WIDTH, break_on_hyphens=False) or [""]
            answer = "\n".join(lines[:SHOWN]) + (" …" if len(lines) > SHOWN else "")
        say(textwrap.indent(answer, "   "))

    async def call(self, name: str, **arguments: Any) -> Any:
        shown = json.dumps(arguments, ensure_ascii=False)
        say(f"   -> {name} {shown}")
        answer = await self.client.call_tool(name, arguments)
        texts = _texts(answer)
        if answer.is_error:
            raise _WrongTurn(f"{name} answered {texts[0]}")
        self.show("\n".join(texts) if self.full else texts[0])
        return answer


def _spaced(answer: str) -> str:
    """JSON with blanks, where lines can break."""
    try:
        return json.dumps(json.loads(answer), ensure_ascii=False)
    except ValueError:
        return answer


def _texts(answer: Any) -> list[str]:
    return [block.text for block in answer.content if block.type == "text"]


def _task_in(answer: Any) -> str:
    for text in _texts(answer):
        if text.startswith('{"proxy_task"'):
            return str(json.loads(text)["proxy_task"]["task_id"])
    raise _WrongTurn("a slow call was not promoted")
