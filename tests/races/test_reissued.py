"""Streams that are cut at any moment, over real HTTP: a call runs once, often as it is sent."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import trio

from asgi_client import modern_headers, stamp
from emceepee_client import GUARD, write_config
from fake_backends import Journal, raw
from raw_http import Peer
from served import serve

CALLS, CUTS, AT_ONCE = 600, 1000, 15


async def test_calls_whose_streams_are_cut_run_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    config = write_config(tmp_path, {"raw": raw(*journal.flags)})
    cuts = 0

    async def send(n: int) -> Peer:
        peer = Peer(await trio.open_tcp_stream(url.hostname or "", url.port or 0))
        args, path = {"file": str(tmp_path / f"go{n}")}, "/mcp"
        params = {"name": "slow", "arguments": args, "_meta": stamp()}
        if n % 2:
            path = "/servers/raw/mcp"
        else:
            call = {"server": "raw", "tool": "slow", "args": args}
            params |= {"name": "execute_tool", "arguments": call}
        message = {"jsonrpc": "2.0", "id": next(ids), "method": "tools/call", "params": params}
        body = json.dumps(message).encode()
        headers = {"host": url.netloc, "content-type": "application/json"} | {
            name.replace("_", "-"): value
            for name, value in modern_headers("tools/call", params).items()
        }
        headers |= {"accept": "application/json, text/event-stream"}
        lines = [f"{name}: {value}" for name, value in headers.items()]
        head = "\r\n".join(
            [f"POST {path} HTTP/1.1", *lines, f"content-length: {len(body)}", "", ""]
        )
        await peer.send(head.encode() + body)
        return peer

    async def one(n: int) -> None:
        nonlocal cuts
        for _ in range(dice.randint(1, 3)):
            peer = await send(n)
            if dice.random() < 0.7:
                await trio.sleep(dice.random() * 0.03)  # wherever that is by then
            await trio.aclose_forcefully(peer.stream)
            cuts += 1
        peer = await send(n)
        if dice.random() < 0.5:
            await trio.sleep(dice.random() * 0.03)
        await trio.Path(tmp_path / f"go{n}").touch()
        await peer.until(b"the file is there")
        await trio.aclose_forcefully(peer.stream)

    async def some(numbers: range) -> None:
        for n in numbers:
            await one(n)

    dice, ids = random.Random(7), itertools.count()
    with trio.fail_after(GUARD), serve(tmp_path, "--config", str(config), "--no-auth") as daemon:
        url = urlsplit(daemon.url)
        async with trio.open_nursery() as nursery:
            for start in range(AT_ONCE):
                nursery.start_soon(some, range(start, CALLS, AT_ONCE))
    ran = Counter(each["params"]["arguments"]["file"] for each in journal.of("tools/call"))
    assert cuts >= CUTS
    assert len(ran) == CALLS
    assert set(ran.values()) == {1}, Counter(ran.values())
