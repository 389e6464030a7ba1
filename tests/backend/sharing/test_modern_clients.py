"""Windows of modern clients that share a server: each is asked for its own calls alone."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from asgi_client import META, Client, Exchange, Json
from asgi_world import open_world
from emceepee_trio.config import Config, Server
from memory_peers import Peer, Peers
from sharers import ELICITATION, FORM, at_url, modern, result

ASKS: Json = {f"{META}clientCapabilities": {"elicitation": {"form": {}}}}
WINDOWS = ("one", "two")


def execute(client: Client, window: str, **more: Json) -> Exchange:
    arguments: Json = {"server": "x", "tool": f"of {window}", "args": {}}
    query = f"session={window}"
    params: Json = {"name": "execute_tool", "arguments": arguments, **more}
    return client.modern("tools/call", query=query, meta=ASKS, **params)


def ask(peer: Peer, window: str, number: int) -> None:
    """In the answer to its call, as servers of either era do."""
    (call,) = [request for request, tool in peer.calls.items() if tool == f"of {window}"]
    params = {"message": f"who is {window}?", "requestedSchema": FORM}
    if peer.is_modern:
        peer.needs(call, number, ELICITATION, params)
    else:
        asked = {"jsonrpc": "2.0", "id": number, "method": ELICITATION, "params": params}
        peer.say(asked, call)


@pytest.mark.parametrize("entry", [at_url(), modern()], ids=["handshake", "modern"])
async def test_each_window_is_asked_and_answers_for_itself(entry: Server) -> None:
    peers = Peers()
    with trio.fail_after(60), peers.in_place():
        async with open_world(Config(servers=(entry,))) as world:
            client = world.client("ada")
            calls = {window: execute(client, window) for window in WINDOWS}
            await wait_all_tasks_blocked()
            (peer,) = peers.all
            assert sorted(peer.began) == ["of one", "of two"]
            for number, window in enumerate(reversed(WINDOWS)):
                ask(peer, window, number)
            again = {}
            for window, exchange in calls.items():
                asked = (await exchange.answer())["result"]
                ((key, question),) = asked["inputRequests"].items()
                assert question["params"]["message"] == f"who is {window}?"
                answer = {"action": "accept", "content": {"name": window}}
                given = {"inputResponses": {key: answer}, "requestState": asked["requestState"]}
                again[window] = execute(client, window, **given)
            await wait_all_tasks_blocked()
            heard = {said["id"]: said["result"]["content"]["name"] for said in peer.answers}
            assert heard == {0: "two", 1: "one"}
            for call, tool in list(peer.calls.items()):
                peer.answer(call, result(f"for {tool}"))
            for window, exchange in again.items():
                (said, *_) = (await exchange.answer())["result"]["content"]
                assert said["text"] == f"for of {window}"
            assert sorted(peer.began) == ["of one", "of two"]  # neither was repeated
            assert len(peers.all) == 1
