"""Real processes whose stderr nobody reads: it is full before they start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio

import warm
from emceepee_client import COMMAND, GUARD, write_config
from emceepee_lines import Lines
from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession
from fake_backends import raw
from full_pipe import Pipe, full_pipe

pytestmark = pytest.mark.once

FLOOD = 3000


@asynccontextmanager
async def stdio(folder: Path, stderr: int, *before: str) -> AsyncGenerator[Lines]:
    """``emceepee stdio``, with a server that can send a flood."""
    config = write_config(folder, {"raw": raw()}, limits={"events": 10})
    # A fork could not be given what is closed.
    it = (*before, *COMMAND) if before else warm.command("emceepee_trio")
    command = [*it, "stdio", "--config", str(config), "--log-level", "debug"]
    pipe = subprocess.PIPE
    with trio.fail_after(GUARD):
        child = await trio.lowlevel.open_process(command, stdin=pipe, stdout=pipe, stderr=stderr)
        try:
            async with child.stdin, child.stdout:  # type: ignore[union-attr]  # they are pipes
                yield Lines(child, folder / "unread")
        finally:
            if child.returncode is None:
                child.kill()
                with trio.CancelScope(shield=True):
                    await child.wait()


async def have_it_say_much(lines: Lines) -> None:
    await lines.initialize()
    answer = await lines.execute("raw", "notify_many", {"n": FLOOD, "k": 0})
    assert not answer.result.get("isError")
    for _ in range(20):
        assert (await lines.execute("raw", "rpc_error")).result["isError"]


@pytest.mark.parametrize("how", [None, signal.SIGTERM])
async def test_stdio_answers_and_ends(tmp_path: Path, how: signal.Signals | None) -> None:
    with full_pipe() as pipe:
        async with stdio(tmp_path, pipe.writes) as lines:
            await have_it_say_much(lines)
            assert await lines.end(how) == 0


async def test_a_reader_that_goes_away_is_not_missed(tmp_path: Path) -> None:
    with full_pipe() as pipe:
        async with stdio(tmp_path, pipe.writes) as lines:
            await lines.initialize()
            pipe.close_reader()
            await have_it_say_much(lines)
            assert await lines.end() == 0


async def test_without_a_stderr_nothing_else_gets_the_log(tmp_path: Path) -> None:
    closed = ("sh", "-c", 'exec "$@" 2>&-', "sh")
    async with stdio(tmp_path, subprocess.DEVNULL, *closed) as lines:
        await have_it_say_much(lines)
        assert await lines.end() == 0


async def test_one_who_reads_at_last_is_told_what_is_missing(tmp_path: Path) -> None:
    with full_pipe() as pipe:
        async with stdio(tmp_path, pipe.writes) as lines:
            await have_it_say_much(lines)
            said = await trio.to_thread.run_sync(pipe.read_until, b'"tool_execution_failed"')
            assert await lines.end() == 0
    events = [json.loads(line)["event"] for line in said.splitlines()]
    assert "log_lines_dropped" not in events  # so much fits


@contextmanager
def serve(folder: Path, pipe: Pipe) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    config = write_config(folder, {"raw": raw()}, limits={"events": 10})
    words = ["--bind", "127.0.0.1:0", "--state-dir", str(folder), "--config", str(config)]
    process = subprocess.Popen(
        [*warm.command("emceepee_trio"), "serve", *words, "--log-level", "debug"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=pipe.writes,
        env=os.environ | {"XDG_CONFIG_HOME": str(folder)},
    )
    with process:
        try:
            assert process.stdout is not None
            found = (re.search(rb"(http://[\w.]+:\d+)/mcp", line) for line in process.stdout)
            yield process, next(url[1].decode() for url in found if url)
        finally:
            process.kill()


def test_serve_answers_and_ends(tmp_path: Path) -> None:
    with full_pipe() as pipe, serve(tmp_path, pipe) as (process, url):
        with RemoteSession.connected(RemoteDaemon.find(url, tmp_path), "unread") as client:
            for tool in ["notify_many", *["rpc_error"] * 20, "echo"]:
                asked = {"server": "raw", "tool": tool, "args": {"n": FLOOD, "k": 0}}
                result = client.call("execute_tool", asked)
            assert not result.get("isError"), result
        process.terminate()
        assert process.wait(GUARD) == 0


@pytest.mark.parametrize("tool", ["echo", "rpc_error"])
def test_call_prints_its_result_and_ends(tmp_path: Path, tool: str) -> None:
    config = write_config(tmp_path, {"raw": raw()})
    words = ["call", "raw", tool, "{}", "--config", str(config), "--log-level", "debug"]
    with full_pipe() as pipe:
        done = subprocess.run(
            [*warm.command("emceepee_trio"), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=pipe.writes,
            timeout=GUARD,
            check=False,
        )
    assert done.returncode == (tool != "echo")
    # An error that is no tool's own goes where nobody reads.
    assert (not done.stdout) if done.returncode else json.loads(done.stdout)
