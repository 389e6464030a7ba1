"""What httpcore tells of a request on its way."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import httpx2
import pytest
import trio
from trio.testing import assert_checkpoints

from emceepee_trio.backend.http.posts import MANY, Post


async def answer(stream: trio.SocketStream, *, headers: int) -> None:
    async with stream:
        await stream.receive_some()
        head = "".join(f"x-{n}: y\r\n" for n in range(headers))
        said = f"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n{head}\r\n"
        await stream.send_all(said.encode())


@pytest.mark.parametrize("headers", [MANY - 1, MANY])
async def test_others_run_between_two_looks_at_very_many_headers(headers: int) -> None:
    post, lets_others_run = Post(1), []

    async def trace(event: str, details: Mapping[str, Any]) -> None:
        with suppress(AssertionError):
            with assert_checkpoints():
                await post.trace(event, details)
            lets_others_run.append(event)

    async with trio.open_nursery() as nursery, httpx2.AsyncClient(trust_env=False) as client:
        (listener,) = await nursery.start(
            partial(trio.serve_tcp, partial(answer, headers=headers), 0, host="127.0.0.1")
        )
        port = listener.socket.getsockname()[1]
        await client.get(f"http://127.0.0.1:{port}/", extensions={"trace": trace})
        nursery.cancel_scope.cancel()
    expected = ["http11.receive_response_headers.complete"] if headers == MANY else []
    assert lets_others_run == expected
