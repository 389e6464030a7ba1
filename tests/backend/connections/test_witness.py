"""A peer may tell of a loss in any words: it is one of its own, and its connection goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from trio.testing import MockClock

from emceepee_trio.backend.connections.callbacks import Over
from emceepee_trio.backend.connections.witness import Unanswered, Witness
from emceepee_trio.config import Config, Server
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.events import ServerDisconnected
from emceepee_trio.session.manager import open_sessions
from fake_backends import Journal, raw
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from memory_peers import Peers
from recording import Running, running

pytestmark = QUIET

GUARD = 60
WORDS = [
    "Connection closed",
    "SSE stream ended without a response",
    "SSE stream ended and reconnection attempts were exhausted",
]
"""Of the SDK, for its own losses. A proxy that is made with it hands them on."""

in_any_words = pytest.mark.parametrize("words", WORDS)
both_eras = pytest.mark.parametrize("era", ["handshake", "modern"])


async def refused(it: Running, words: str, tool: str, **arguments: Any) -> None:
    with pytest.raises(MCPError) as caught:
        await it.call(tool, **arguments)
    assert type(caught.value) is MCPError
    assert (caught.value.error.code, caught.value.error.message) == (-32000, words)


@in_any_words
@both_eras
async def test_an_error_of_a_program_fails_its_call_alone(
    words: str, era: str, tmp_path: Path
) -> None:
    journal, file = Journal(tmp_path / "journal"), tmp_path / "go on"
    flags = ("--discover", "modern") if era == "modern" else ()
    with trio.fail_after(GUARD):
        async with running(raw(*flags, *journal.flags)) as it, trio.open_nursery() as nursery:
            client = await it.backend.connection()
            nursery.start_soon(lambda: it.call("slow", file=str(file)))
            await journal.wait_for_marker("slow started")
            await refused(it, words, "rpc_error", code=-32000, message=words)
            assert it.backend.client is client
            file.touch()
            await journal.wait_for_marker("slow finished")
            assert not it.host.all(ServerDisconnected)


@in_any_words
@both_eras
@pytest.mark.parametrize("streams", [False, True])
async def test_an_error_of_a_peer_behind_a_url_fails_its_call_alone(
    words: str, era: Literal["handshake", "modern"], streams: bool
) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method != "tools/call" or request.message["params"]["name"] != "lost":
            return False
        error = {"code": -32000, "message": words}
        answer = {"jsonrpc": "2.0", "id": request.message["id"], "error": error}
        if streams:
            await reply.events()
            await reply.event(answer)
            await reply.end()
        else:
            await reply.json(answer)
        return True

    server = HttpServer(era, spoil=spoil)
    with trio.fail_after(GUARD):
        async with open_http_server(server), running({"url": server.url}) as it:
            client = await it.backend.connection()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(it.call, "slow")
                await server.wait_for("tools/call")
                await refused(it, words, "lost")
                assert it.backend.client is client
                assert not server.of("ping")  # nor was it looked for
                server.release.set()
            assert not it.host.all(ServerDisconnected)


@in_any_words
@pytest.mark.parametrize("era", ["auto", "handshake"])
async def test_a_refusal_to_connect_is_told_as_it_is(
    words: str, era: Literal["auto", "handshake"], autojump_clock: MockClock
) -> None:
    """And not taken for the death of one that does not know what it was asked."""
    peers = Peers(mood="waits")
    with peers.in_place():
        async with open_sessions(Config()) as manager:
            session = await manager.ensure("a", "ada")
            server = Server("x", command="program", era=era)

            async def refuse() -> None:
                await trio.sleep(1)
                (hello,) = peers.all[0].of("initialize")
                peers.all[0].refuse(hello, words)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(refuse)
                with pytest.raises(ConnectFailed, match=f"refused to initialize: {words}") as seen:
                    await manager.servers.add(session, server, keep_on_failure=False)
            assert seen.value.details is not None
            assert seen.value.details["code"] == -32000
            assert len(peers.all) == 1


# -- the witness by itself ------------------------------------------------------------------------


def closed() -> MCPError:
    """What the SDK says of its own accord."""
    return MCPError(-32000, WORDS[0])


def answer(request_id: object) -> SessionMessage:
    error = {"code": -32000, "message": WORDS[0]}
    whole = {"jsonrpc": "2.0", "id": request_id, "error": error}
    return SessionMessage(jsonrpc_message_adapter.validate_python(whole))


def ends(witness: Witness, *read: SessionMessage | Exception, over: bool = True) -> None:
    """A request of id 7, after which the SDK says that the connection is closed."""
    with witness.asking(7):
        for item in read:
            witness.read(item)
        if over:
            witness.over.set()
        raise closed()


@pytest.fixture
def witness() -> Witness:
    return Witness(Over(lambda: None))


def test_a_loss_is_one_that_nobody_has_answered(witness: Witness) -> None:
    with pytest.raises(Unanswered):
        ends(witness, answer(8), ValueError())


@pytest.mark.parametrize("request_id", [7, "7"], ids=repr)
def test_what_was_answered_in_the_tick_of_the_loss_was_answered(
    request_id: object, witness: Witness
) -> None:
    with pytest.raises(MCPError) as caught:
        ends(witness, answer(request_id))
    assert not isinstance(caught.value, Unanswered)


def test_what_could_not_be_sent_is_no_loss(witness: Witness) -> None:
    with pytest.raises(MCPError) as caught:
        ends(witness, over=False)
    assert not isinstance(caught.value, Unanswered)
