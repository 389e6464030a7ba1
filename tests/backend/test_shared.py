"""What the connections of all sessions share: here the bound on children."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from emceepee_trio.backend.shared import Shared
from emceepee_trio.config import Retry
from emceepee_trio.errors import ConnectFailed, LimitReached
from emceepee_trio.model.states import BackendState
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, open_http_server
from recording import running

GUARD = 60
LATER = {"restart": Retry(base_delay_ms=60_000)}


def test_five_hundred_children_are_the_most_of_a_daemon() -> None:
    assert Shared().most_children == 500


async def test_a_child_too_many_is_not_started_and_tried_again(tmp_path: Path) -> None:
    shared, journal = Shared(most_children=1), Journal(tmp_path / "journal")
    with trio.fail_after(GUARD):
        async with running(raw() | LATER, shared=shared) as first:
            await first.call("echo")
            async with running(raw(*journal.flags) | LATER, shared=shared) as second:
                with pytest.raises(LimitReached) as caught:
                    await second.backend.connection()
                assert caught.value.message.startswith(
                    "server 'it': 1 child processes run already, of all sessions of this daemon "
                    "together; remove servers that start a program, or end sessions; next try in "
                )
                assert second.backend.state is BackendState.RECONNECTING
                first.backend.leave("to make room", 0.3)
                await first.backend.ended.wait()
                await second.call("echo")
                assert shared.children == 1
    assert shared.children == 0
    assert sum("started" in entry for entry in journal.entries()) == 1


async def test_what_has_failed_or_died_takes_no_place() -> None:
    shared = Shared(most_children=1)
    with trio.fail_after(GUARD):
        for entry in (
            raw("--exit-at-once", 3),
            raw("--discover", "die"),
            {"command": "no-such-program"},
            raw(),
        ):
            async with running(entry | LATER, shared=shared) as it:
                try:
                    await it.backend.connection()
                except ConnectFailed:
                    assert shared.children == 0
                else:
                    assert shared.children == 1
    assert shared.children == 0


@QUIET
async def test_a_url_needs_no_place() -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running({"url": server.url}, shared=Shared(most_children=0)) as it,
        ):
            await it.call("echo")
