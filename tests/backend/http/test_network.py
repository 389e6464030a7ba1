"""``policy.network``: which addresses are connected to, judged where sockets are connected."""

from __future__ import annotations

import socket
from typing import Any

import attrs
import pytest
import trio
import trio.socket
from mcp import MCPError

from emceepee_trio.backend.http.network import Restricted
from emceepee_trio.config import Reconnect
from emceepee_trio.errors import ConnectFailed, Denied
from emceepee_trio.model.events import ServerDisconnected
from emceepee_trio.model.states import BackendState
from http_server import QUIET, HttpServer, Reply, Request, open_http_server
from recording import Running, running

pytestmark = QUIET

GUARD = 60
NAME = "tools.example"
METADATA, LOOPBACK = "169.254.169.254", "127.0.0.1"
SOON = {"reconnect": Reconnect(base_delay_ms=10, max_delay_ms=10)}


@attrs.define(eq=False)
class Names(trio.abc.HostnameResolver):
    """What a name server says; the last of several answers it says for ever."""

    answers: list[list[str]]
    asked: list[str] = attrs.field(factory=list, init=False)

    async def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> Any:
        self.asked.append(host.decode() if isinstance(host, bytes) else host)
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [
            entry
            for address in addresses
            for entry in await trio.socket.getaddrinfo(address, port, type=type)
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> Any:
        raise AssertionError("nobody asks that")


@pytest.fixture
async def names() -> Names:
    """For this run of trio: everything is here, until the test says otherwise."""
    names = Names([[LOOPBACK]])
    trio.socket.set_custom_hostname_resolver(names)
    return names


def entry(server: HttpServer, path: str = "mcp") -> dict[str, Any]:
    return {"url": f"http://{NAME}:{server.port}/{path}"} | SOON


async def refused(it: Running) -> str:
    with pytest.raises(Denied) as caught:
        await it.backend.connection()
    assert it.backend.state is BackendState.ERROR
    assert it.backend.next_try is None
    return caught.value.message


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_a_name_that_leads_elsewhere_is_refused_and_not_tried_again(
    path: str, names: Names
) -> None:
    names.answers = [[METADATA, "fe80::1"]]
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running(entry(server, path), restricted=True) as it,
        ):
            assert await refused(it) == (
                f"server 'it': policy.network is restricted and {NAME} leads to {METADATA}, "
                "a cloud metadata address; only the operator can allow it, by configuring this "
                "server or the policy"
            )
            assert server.requests == []


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_a_name_that_leads_here_is_connected_to(path: str, names: Names) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running(entry(server, path), restricted=True) as it,
        ):
            await it.call("echo")
            assert {r.headers["host"] for r in server.requests} == {f"{NAME}:{server.port}"}
            assert set(names.asked) == {NAME}


async def test_of_several_addresses_only_the_good_ones_are_tried(names: Names) -> None:
    # Nobody listens at the second; the third is tried next.
    names.answers = [[METADATA, "127.0.0.2", "fe80::1", LOOPBACK]]
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running(entry(server), restricted=True) as it,
        ):
            await it.call("echo")


async def test_a_bad_address_is_not_tried_when_the_good_ones_fail(names: Names) -> None:
    names.answers = [["127.0.0.2", METADATA, "127.0.0.3"]]
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running(entry(server), restricted=True) as it,
        ):
            with pytest.raises(ConnectFailed, match="cannot reach"):
                await it.backend.connection()


async def test_a_name_that_does_not_exist_is_no_matter_of_policy(names: Names) -> None:
    names.answers = [[]]
    with trio.fail_after(GUARD):
        async with running({"url": f"http://{NAME}/mcp"} | SOON, restricted=True) as it:
            with pytest.raises(ConnectFailed, match="no such name"):
                await it.backend.connection()
            assert it.backend.next_try is not None


@pytest.mark.parametrize("restricted", [True, False])
async def test_a_name_that_is_none_cannot_be_reached(restricted: bool) -> None:
    url = f"http://{'x' * 64}.example/mcp"
    with trio.fail_after(GUARD):
        async with running({"url": url} | SOON, restricted=restricted) as it:
            with pytest.raises(ConnectFailed, match=r"cannot reach .*label"):
                await it.backend.connection()


async def test_a_name_that_changes_its_mind_is_refused_at_the_next_connection(
    names: Names,
) -> None:
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as server,
            running(entry(server), restricted=True) as it,
            trio.open_nursery() as nursery,
        ):
            # Calls under way hold every TCP connection that there is; one more needs another.
            for count in range(1, 6):
                nursery.start_soon(fails, it, "slow")
                await server.wait_for("tools/call", count)
            names.answers = [[METADATA]]
            await fails(it, "echo")
            lost = await it.host.wait_for(ServerDisconnected)
            assert lost.reason.startswith("policy.network is restricted and tools.example leads")
            assert "a cloud metadata address" in await refused(it)
            assert len(server.of("tools/call")) == 5


async def fails(it: Running, tool: str) -> None:
    with pytest.raises(MCPError, match="Connection closed"):
        await it.call(tool)


async def test_nobody_is_sent_elsewhere_by_a_redirect(names: Names) -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        await reply.whole(307, location=f"http://{METADATA}/latest/")
        return True

    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer(spoil=spoil)) as server,
            running(entry(server), restricted=True) as it,
        ):
            with pytest.raises(ConnectFailed, match="not followed"):
                await it.backend.connection()
            assert set(names.asked) == {NAME}


async def test_what_is_not_restricted_goes_where_it_is_told(names: Names) -> None:
    """Link-local, on a network that is this machine: it is tried, and nobody is there."""
    names.answers = [["fe80::1%lo"]]
    quick = {"connect_timeout_ms": 1000, "url": f"http://{NAME}:9/mcp"}
    with trio.fail_after(GUARD):
        async with running(quick | SOON) as it:
            with pytest.raises(ConnectFailed):
                await it.backend.connection()
        async with running(quick | SOON, restricted=True) as it:
            assert "a link-local address" in await refused(it)


async def test_a_server_that_the_operator_takes_over_is_no_longer_restricted(names: Names) -> None:
    names.answers = [["fe80::1%lo"]]
    with trio.fail_after(GUARD):
        async with open_http_server(HttpServer()) as server:
            async with running(entry(server), restricted=True) as it:
                await refused(it)
                it.backend.restricted = False
                names.answers = [[LOOPBACK]]
                await it.call("echo")


@pytest.mark.parametrize("restricted", [True, False])
async def test_a_proxy_of_the_environment_is_for_those_who_are_not_restricted(
    restricted: bool, monkeypatch: pytest.MonkeyPatch, names: Names
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with trio.fail_after(GUARD):
        async with (
            open_http_server(HttpServer()) as proxy,
            open_http_server(HttpServer()) as server,
        ):
            monkeypatch.setenv("http_proxy", f"http://{LOOPBACK}:{proxy.port}")
            async with running(entry(server), restricted=restricted) as it:
                await it.backend.connection()
            assert bool(server.requests) is restricted
            assert bool(proxy.requests) is not restricted
            # It would have been the proxy who resolves the name.
            assert bool(names.asked) is restricted


async def test_an_address_is_connected_to_but_the_name_is_what_tls_is_told(names: Names) -> None:
    hello: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        hello.append(await stream.receive_some())
        await stream.aclose()

    with trio.fail_after(GUARD):
        (listener,) = await trio.open_tcp_listeners(0, host=LOOPBACK)
        port = listener.socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, serve, [listener])
            async with running({"url": f"https://{NAME}:{port}/"} | SOON, restricted=True) as it:
                with pytest.raises(ConnectFailed):
                    await it.backend.connection()
            nursery.cancel_scope.cancel()
    assert set(names.asked) == {NAME}
    assert NAME.encode() in hello[0]


async def test_a_name_is_asked_for_once_and_what_was_judged_is_connected_to(names: Names) -> None:
    names.answers = [[LOOPBACK], [METADATA]]
    with trio.fail_after(GUARD):
        (listener,) = await trio.open_tcp_listeners(0, host=LOOPBACK)
        async with listener:
            port = listener.socket.getsockname()[1]
            stream = await Restricted().connect_tcp(NAME, port)
            await (await listener.accept()).aclose()
            await stream.aclose()
    assert names.asked == [NAME]
