"""Who is measured: how each is started, and what is asked of it. Starts nothing itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from instructions import START

from .installs import Missing, Npm, Python, revision

HERE = Path(__file__).parent
ECHO = [sys.executable, str(HERE / "echo.py")]
"""The server behind all of them."""
TEXT = "hello"

Way = Literal["HTTP to stdio", "HTTP to HTTP", "stdio to stdio"]
Role = Literal["floor", "ours", "peer"]
Command = Callable[[int], list[str]]
"""Of the port to listen on, if it does."""


@dataclass(frozen=True)
class Contender:
    """One row."""

    name: str
    role: Role
    way: Way
    command: Command
    counted: Command | None = None
    """To count its instructions; none of what compiles itself while it runs."""
    is_modern: bool = False

    @property
    def call(self) -> dict[str, Any]:
        """The parameters of a tools/call that says TEXT."""
        said = {"text": TEXT}
        if self.role != "ours":
            return {"name": "echo", "arguments": said}
        arguments = {"server": "echo", "tool": "echo", "args": said}
        return {"name": "execute_tool", "arguments": arguments}


def contenders(
    kept: Path, scratch: Path, url: str, before: list[str], wanted: tuple[str, ...]
) -> Iterator[Contender]:
    """All that can be had here; what cannot is said.

    Args:
        kept: where those of others are installed.
        scratch: for configurations, and what is remembered.
        url: of a server over HTTP.
        before: revisions of ours.
        wanted: the beginnings of their names.
    """
    for each in _every(kept, scratch, url, before, wanted):
        if each.name.startswith(wanted):
            yield each


def _every(
    kept: Path, scratch: Path, url: str, before: list[str], wanted: tuple[str, ...]
) -> Iterator[Contender]:
    program = _config(scratch / "program.json", {"command": ECHO[0], "args": ECHO[1:]})
    remote = _config(scratch / "remote.json", {"url": url})
    yield from _floors()
    yield from _ours("emceepee", sys.executable, program, remote)
    for name in before:
        try:
            python, commit = revision(kept, name)
        except Missing as missing:
            _say_missing(name, missing)
        else:
            yield from _ours(f"emceepee {commit}", python.python, program, remote)
    for name, of in (
        ("mcp-proxy", _mcp_proxy),
        ("fastmcp", partial(_fastmcp, program=program, url=url)),
        ("supergateway", _supergateway),
        ("npm mcp-proxy", _npm_mcp_proxy),
    ):
        if not any(name.startswith(word) or word.startswith(name) for word in wanted):
            continue  # not even installed
        try:
            yield from of(kept / name.replace(" ", "-"))
        except Missing as missing:
            _say_missing(name, missing)


def _say_missing(name: str, why: Missing) -> None:
    print(f"without {name}: {why}", file=sys.stderr, flush=True)


def _config(path: Path, server: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"mcpServers": {"echo": server}}), "utf-8")
    return path


def _floors() -> Iterator[Contender]:
    floors: list[tuple[str, Way, str, list[str]]] = [
        ("trio by hand", "HTTP to stdio", "on_trio.py", ECHO),
        ("uvicorn by hand", "HTTP to stdio", "on_uvicorn.py", ECHO),
        ("a server of the SDK itself", "HTTP to HTTP", "on_sdk.py", []),
    ]
    for name, way, program, behind in floors:
        command = partial(_with_port, [sys.executable, str(HERE / program)], behind)
        yield Contender(name, "floor", way, command, command)
    itself = partial(_as_it_is, ECHO)
    yield Contender("the server itself", "floor", "stdio to stdio", itself, itself)


def _with_port(before: list[str], after: list[str], port: int) -> list[str]:
    return [*before, str(port), *after]


def _as_it_is(command: list[str], port: int) -> list[str]:
    return command


def _ours(name: str, python: str, program: Path, remote: Path) -> Iterator[Contender]:
    def command(begin: list[str], kind: str, config: Path, port: int) -> list[str]:
        served = ["--no-auth", "--bind", f"127.0.0.1:{port}"] if kind == "serve" else []
        return [*begin, kind, "--config", str(config), *served]

    ways: list[tuple[str, Way, Path, bool]] = [
        ("serve", "HTTP to stdio", program, False),
        ("serve", "HTTP to stdio", program, True),
        ("serve", "HTTP to HTTP", remote, False),
        ("stdio", "stdio to stdio", program, False),
    ]
    for kind, way, config, is_modern in ways:
        run = partial(command, [python, "-m", "emceepee_trio"], kind, config)
        counted = partial(command, [python, "-c", START], kind, config)
        full = f"{name}, modern" if is_modern else name
        yield Contender(full, "ours", way, run, counted, is_modern)


def _mcp_proxy(folder: Path) -> Iterator[Contender]:
    installed = Python(folder, "mcp-proxy>=0.13")
    start = installed.program("mcp-proxy")
    name = f"mcp-proxy {installed.version('mcp-proxy')}"
    for more in [], ["--stateless"]:
        command = partial(_with_port, [*start, *more, "--port"], ["--", *ECHO])
        yield Contender(" ".join([name, *more]), "peer", "HTTP to stdio", command, command)


SHARED = """
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
async def main(port, program, *args):
    async with Client(StdioTransport(program, list(args))) as client:
        proxy = create_proxy(client)
        await proxy.run_async("http", port=int(port), show_banner=False, log_level="ERROR")
asyncio.run(main(*sys.argv[1:]))
"""
"""One connection for all requests, which it does where it is told to."""


def _fastmcp(folder: Path, program: Path, url: str) -> Iterator[Contender]:
    installed = Python(folder, "fastmcp>=4.1")
    name = f"fastmcp {installed.version('fastmcp')}"
    run = [*installed.program("fastmcp"), "run", "--no-banner"]
    served = ["--transport", "http", "--port"]
    ways: list[tuple[str, Way, list[str], list[str]]] = [
        (name, "HTTP to stdio", [*run, str(program), *served], []),
        (f"{name}, one connection", "HTTP to stdio", [installed.python, "-c", SHARED], ECHO),
        (name, "HTTP to HTTP", [*run, url, *served], []),
    ]
    for full, way, before, after in ways:
        command = partial(_with_port, before, after)
        yield Contender(full, "peer", way, command, command)
    through = partial(_as_it_is, [*run, str(program)])
    yield Contender(name, "peer", "stdio to stdio", through, through)


def _supergateway(folder: Path) -> Iterator[Contender]:
    installed = Npm(folder, "supergateway@>=4")
    start = [*installed.program("supergateway"), "--stdio", " ".join(ECHO), "--stateful"]
    start += ["--outputTransport", "streamableHttp", "--logLevel", "none", "--port"]
    name = f"supergateway {installed.version('supergateway')}"
    yield Contender(name, "peer", "HTTP to stdio", partial(_with_port, start, []))


def _npm_mcp_proxy(folder: Path) -> Iterator[Contender]:
    installed = Npm(folder, "mcp-proxy@>=6.7")
    start = [*installed.program("mcp-proxy"), "--host", "127.0.0.1", "--port"]
    name = f"npm mcp-proxy {installed.version('mcp-proxy')}"
    yield Contender(name, "peer", "HTTP to stdio", partial(_with_port, start, ["--", *ECHO]))
