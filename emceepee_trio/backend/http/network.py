"""HTTP connections that go only where ``policy.network`` lets them.

Owns the place where a socket is connected, by us or by httpx2: names are resolved here, each
address is judged, and those that pass are connected to as they are, so that no name can change its
mind in between. That holds for every TCP connection, the first or the hundredth, whatever URL led
to it. Does not know whom the policy concerns.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import TypeVar

import httpcore2
import httpx2
import trio
from httpcore2 import SOCKET_OPTION, AsyncNetworkBackend, AsyncNetworkStream

from ...model.addresses import objection

T = TypeVar("T")

NEXT = 1.0
"""Seconds for each address of a name but the last, which gets what is left: not every machine that
has IPv6 addresses can be reached by them."""


class Forbidden(httpx2.ConnectError):
    """All that a name stands for is forbidden; nothing was sent there."""


class Restricted(AsyncNetworkBackend):
    """Connects to no address that somebody could object to."""

    def __init__(self) -> None:
        self._inner = httpcore2.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - of the class
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> AsyncNetworkStream:
        async def dial(address: str) -> AsyncNetworkStream:
            return await self._inner.connect_tcp(address, port, None, local_address, socket_options)

        try:
            with trio.fail_after(math.inf if timeout is None else timeout):
                return await _first(await _resolve(host, port), dial)
        except trio.TooSlowError as error:
            raise httpcore2.ConnectTimeout(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(str(error)) from error

    async def connect_unix_socket(self, *_: object, **__: object) -> AsyncNetworkStream:
        raise AssertionError("no URL leads to a Unix socket")

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


async def connect(host: str, port: int, patience: float, *, restricted: bool) -> trio.SocketStream:
    """A TCP connection, within *patience* seconds.

    Raises:
        httpx2.ConnectError: there is none; among them Forbidden.
        httpx2.ConnectTimeout: it took longer.
    """

    async def dial(address: str) -> trio.SocketStream:
        return await trio.open_tcp_stream(address, port)

    try:
        with trio.fail_after(patience):
            return await _first(await _resolve(host, port) if restricted else [host], dial)
    except trio.TooSlowError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except (OSError, UnicodeError) as error:  # the latter of names that are none
        raise httpx2.ConnectError(str(error)) from error


async def _first(addresses: list[str], dial: Callable[[str], Awaitable[T]]) -> T:
    """Of those that can be connected to."""
    *others, last = addresses
    for address in others:
        with suppress(OSError, httpcore2.ConnectError), trio.move_on_after(NEXT):
            return await dial(address)
    return await dial(last)


async def _resolve(host: str, port: int) -> list[str]:
    """The addresses of *host* that may be connected to, each once, at least one.

    Raises:
        Forbidden: there are only others.
        OSError: there are none.
        UnicodeError: it is no name.
    """
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    addresses = [ip_address(str(sockaddr[0])) for *_, sockaddr in found]
    allowed = list(dict.fromkeys(str(each) for each in addresses if objection(each) is None))
    if not allowed:
        first = addresses[0]
        leads = "is" if str(first) == host else f"leads to {first},"
        raise Forbidden(f"policy.network is restricted and {host} {leads} {objection(first)}")
    return allowed


def through_proxy(
    client: httpx2.AsyncClient | None, url: httpx2.URL
) -> httpx2.AsyncBaseTransport | None:
    """By what *client*, if there is one, would ask a proxy of the environment for *url*."""
    if client is None:
        return None
    found = client._transport_for_url(url)
    return None if found is client._transport else found


class RestrictedTransport(httpx2.AsyncHTTPTransport):
    """That of httpx2, without a word for how to connect, so it is made here.

    Knows no proxy, and a client that is given it asks the environment for none: a proxy would
    resolve names where nobody can judge them.
    """

    def __init__(self, certificates: ssl.SSLContext, limits: httpx2.Limits) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=certificates,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=Restricted(),
        )
