"""Requests that wait for a server are counted, whatever they want of it and whoever went away."""

from __future__ import annotations

import json
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from asgi_client import BATCHING, BOTH, DONE, HELLO, Json, request
from emceepee_client import GUARD, write_config
from emceepee_lines import Lines, open_lines
from emceepee_trio.tools import TOOLBOX
from fake_backends import raw
from raw_http import Peer
from served import Daemon, serve

MUTE = raw(
    *("--mute", "resources/read", "--mute", "prompts/get", "--mute", "completion/complete"),
    *("--mute", "resources/subscribe", "--mute", "logging/setLevel", "--mute", "resources/list"),
)
ASK: dict[str, Json] = {
    "read_resource": {"uri": "test://a"},
    "get_prompt": {"name": "greet"},
    "complete": {"ref": {"prompt": "greet"}, "argument": {"name": "name", "value": ""}},
    "subscribe_resource": {"uri": "test://a"},
    "set_log_level": {"level": "error"},
    "list_resources": {},
}
ARGUMENTS: dict[str, Json] = {
    "remove_server": {"name": "nobody"},
    "get_task_result": {"task_id": "none"},
}
MORE = 60 * 1024 * 1024
"""Bytes; what is not counted takes several times as many."""
MANY = 900
QUIET = 20
"""Looks, twenty a second."""
BATCH, BATCHES = 100, 30


async def ask(lines: Lines, request_id: str, tool: str, /, **arguments: object) -> None:
    params = {"name": tool, "arguments": {"server": "mute", **arguments}}
    await lines.send(request(request_id, "tools/call", **params))


async def test_whatever_waits_for_a_server_takes_a_place(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"mute": MUTE}, limits={"calls": 2}) as lines:
        await lines.initialize()
        await lines.execute("mute", "echo", {"text": "is there"})
        await ask(lines, "never", "execute_tool", tool="never")
        for n, (tool, arguments) in enumerate(ASK.items()):
            await ask(lines, f"held {n}", tool, **arguments)
            for other, asked in ASK.items():
                error = (await lines.call(f"{other} {n}", other, server="mute", **asked)).error
                assert error["code"] == "TOOL_ERR_LIMIT"
                assert "limits.calls" in error["message"]
            error = (await lines.execute("mute", "echo")).error
            assert "limits.calls" in error["message"]
            gone = {"requestId": f"held {n}", "reason": "enough"}
            await lines.send(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone}
            )
            # Whoever asks next finds the place free.
            assert (await lines.execute("mute", "echo", {"text": "again"})).text == "again"


async def test_what_waits_for_nothing_is_answered_when_all_places_are_taken(tmp_path: Path) -> None:
    async with open_lines(tmp_path, {"mute": MUTE}, limits={"calls": 1}) as lines:
        await lines.initialize()
        await lines.execute("mute", "echo", {"text": "is there"})
        await ask(lines, "never", "execute_tool", tool="never")
        for tool in TOOLBOX.tools:
            if not tool.waits and tool.name not in {"execute_tool", "await_activity"}:
                await lines.call(tool.name, tool.name, **ARGUMENTS.get(tool.name, {}))
        assert (await lines.call("left", "remove_server", name="mute")).json == {"removed": "mute"}


class Dropping:
    """A client over HTTP that hangs up on everything it asks."""

    def __init__(self, daemon: Daemon) -> None:
        self._port = int(re.findall(r":(\d+)/", daemon.url)[0])
        self._headers = ""

    async def _post(self, message: object) -> Peer:
        body = json.dumps(message)
        peer = Peer(await trio.open_tcp_stream("127.0.0.1", self._port))
        await peer.send(
            f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{self._port}\nAccept: {BOTH}\n{self._headers}"
            f"Content-Type: application/json\nContent-Length: {len(body)}\n\n{body}"
        )
        return peer

    async def join(self) -> None:
        peer = await self._post(request(1, "initialize", protocolVersion=BATCHING, **HELLO))
        async with peer.stream:
            session = (await peer.answer()).headers["mcp-session-id"]
        self._headers = f"Mcp-Session-Id: {session}\n"
        peer = await self._post(DONE)
        async with peer.stream:
            assert (await peer.answer()).status == 202

    async def drop(self, messages: list[Json]) -> None:
        """The messages are taken; the stream of the answers has begun when it is cut."""
        status = b"503"
        while status == b"503":  # others of ours wait to be read
            peer = await self._post(messages)
            async with peer.stream:
                status = (await peer.until(b"\r\n")).split()[1]
            if status == b"503":
                await trio.sleep(0.1)
        assert status == b"200"


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024


async def test_who_hangs_up_on_ever_more_batches_takes_no_more_room(tmp_path: Path) -> None:
    config = write_config(tmp_path, {"mute": MUTE})
    with trio.fail_after(GUARD), serve(tmp_path, "--config", str(config), "--no-auth") as daemon:
        client = Dropping(daemon)
        await client.join()
        sizes = []
        for n in range(BATCHES):
            await client.drop(
                [
                    request(
                        f"{n}.{i}",
                        "tools/call",
                        name="read_resource",
                        arguments={"server": "mute", "uri": "test://a"},
                    )
                    for i in range(BATCH)
                ]
            )
            sizes.append(resident(daemon.pid))
        assert sizes[-1] - sizes[0] < MORE


def worked(pid: int) -> int:
    """Ticks of the processor it has had."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


async def rests(pid: int) -> None:
    """Until it does nothing any more."""
    quiet, before = 0, worked(pid)
    while quiet < QUIET:
        await trio.sleep(0.05)
        now = worked(pid)
        quiet, before = (quiet + 1, before) if now == before else (0, now)


@pytest.mark.parametrize("is_known", [False, True])
async def test_who_reads_no_answer_is_not_read_from(tmp_path: Path, is_known: bool) -> None:
    # Without params the answer is known when the request is read.
    params: dict[str, Json] = {} if is_known else {"_meta": {}}
    async with open_lines(tmp_path, {}) as lines, trio.open_nursery() as nursery:
        await lines.initialize()
        small = resident(lines.child.pid)
        asked = [request(n, "tools/list", **params) for n in range(MANY)]
        nursery.start_soon(lines.send, *asked)
        await rests(lines.child.pid)
        assert resident(lines.child.pid) - small < MORE
        answered: dict[int, Json] = {}
        while len(answered) < MANY:
            message = await lines.receive()
            assert message is not None
            assert message["id"] not in answered
            answered[message["id"]] = message
        refused = [m["error"] for m in answered.values() if "error" in m]
        assert is_known or 0 < len(refused) < MANY
        assert not (is_known and refused)  # they wait to be read
        assert all("more than 512 requests wait" in error["message"] for error in refused)
        assert "result" in await lines.request("last", "tools/list")


async def test_a_signal_ends_it_whatever_waits(tmp_path: Path) -> None:
    async def write() -> None:
        with suppress(trio.BrokenResourceError):
            params = {"name": "read_resource", "arguments": {"server": "mute", "uri": "test://a"}}
            await lines.send(*(request(n, "tools/call", **params) for n in range(MANY)))

    async with open_lines(tmp_path, {"mute": MUTE}) as lines, trio.open_nursery() as nursery:
        await lines.initialize()
        await lines.execute("mute", "echo", {"text": "is there"})
        nursery.start_soon(write)
        await rests(lines.child.pid)
        assert await lines.end(signal.SIGTERM) == 0
