"""Where to listen: the addresses of a command line, and the sockets they become.

Everything is bound before anything is started, so that a bind that fails leaves nothing behind.
Knows nothing of HTTP.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import TypeAlias

import attrs

from ..errors import EmceepeeError

BACKLOG = 1024
"""Connections the kernel keeps for us; with 100, a thousand at once take seconds."""
OURS_ALONE = 0o177
"""The umask of Unix sockets: whoever may connect may start programs."""

_TCP = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:/\[\]@]+))(?::(?P<port>\d{1,5}))?")


class CannotListen(EmceepeeError):
    """A socket could not be had; says which and why, in one line."""


@attrs.frozen
class Tcp:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class Unix:
    path: Path

    def __str__(self) -> str:
        return f"unix:{self.path}"


@attrs.frozen
class Inherited:
    """A socket that whoever started us has opened."""

    fd: int

    def __str__(self) -> str:
        return f"fd://{self.fd}"


Bind: TypeAlias = Tcp | Unix | Inherited


def parse_bind(text: str, default_port: int) -> Bind:
    """What ``--bind`` means.

    Raises:
        ValueError: nothing; says what it may look like.
    """
    if text.startswith("unix:") and len(text) > len("unix:") and "\0" not in text:
        return Unix(Path(text.removeprefix("unix:")))
    if re.fullmatch(r"fd://\d{1,6}", text):
        return Inherited(int(text.removeprefix("fd://")))
    match = _TCP.fullmatch(text)
    port = int(match["port"] or default_port) if match else 0
    if match is None or port > 65535:
        raise ValueError(f"expected HOST:PORT, [IPV6]:PORT, unix:PATH or fd://N, got {text!r}")
    return Tcp(match["six"] or match["host"], port)


@attrs.frozen
class Bound:
    """A socket that listens."""

    socket: socket.socket
    names: tuple[str, ...] = ()
    """What it was bound by, if that was a name."""

    @property
    def is_unix(self) -> bool:
        return self.socket.family == socket.AF_UNIX

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        if self.is_unix:
            return True
        address = ip_address(self.socket.getsockname()[0].partition("%")[0])
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback

    @property
    def url(self) -> str | None:
        """How a client on this machine reaches it; Unix sockets have none."""
        if self.is_unix:
            return None
        host, port = self.socket.getsockname()[:2]
        if ip_address(host.partition("%")[0]).is_unspecified:
            host = "127.0.0.1" if self.socket.family == socket.AF_INET else "::1"
        return f"http://{Tcp(host, port)}"

    def __str__(self) -> str:
        address = self.socket.getsockname()
        if not self.is_unix:
            return str(Tcp(*address[:2]))
        if isinstance(address, bytes):  # abstract; only an inherited one can be
            return "unix:@" + address[1:].decode(errors="replace")
        return f"unix:{address}"


@contextmanager
def listening(
    binds: Sequence[Bind], environ: Mapping[str, str] = os.environ
) -> Generator[list[Bound]]:
    """The sockets of *binds*, until the block is left.

    Raises:
        CannotListen: one of them cannot be had; none is kept.
    """
    with ExitStack() as stack:
        found: list[Bound] = []
        for bind in binds:
            try:
                match bind:
                    case Tcp():
                        found += (stack.enter_context(_closing(b)) for b in _open_tcp(bind))
                    case Unix():
                        found.append(stack.enter_context(_open_unix(bind.path)))
                    case Inherited():
                        found.append(stack.enter_context(_closing(_adopt(bind, environ))))
            except (OSError, UnicodeError) as error:
                # Some of these have nothing but a text.
                reason = getattr(error, "strerror", None) or str(error)
                raise CannotListen(f"cannot listen on {bind}: {reason}") from None
        yield found


@contextmanager
def _closing(bound: Bound) -> Generator[Bound]:
    with bound.socket:
        yield bound


def _open_tcp(bind: Tcp) -> Iterator[Bound]:
    """A socket for each address of the host; with port 0, the same port for all."""
    found = socket.getaddrinfo(
        bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    addresses = list(dict.fromkeys((family, address[:2]) for family, *_, address in found))
    names = () if _is_address(bind.host) else (bind.host,)
    port, missing, some = bind.port, None, False
    for family, (host, _) in addresses:
        try:
            sock = _tcp_socket(family, str(host), port)
        except OSError as error:
            # `localhost` has an IPv6 address also where IPv6 is off.
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
            missing = error
            continue
        port, some = sock.getsockname()[1], True
        yield Bound(sock, names)
    if missing is not None and not some:
        raise missing


def _tcp_socket(family: int, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


@contextmanager
def _open_unix(path: Path) -> Generator[Bound]:
    """A socket that only our user can connect to; its file goes when the block is left."""
    _make_way(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        before = os.umask(OURS_ALONE)
        try:
            sock.bind(str(path))
        finally:
            os.umask(before)
        mine = path.lstat()
        try:
            sock.listen(BACKLOG)
            yield Bound(sock)
        finally:
            # Somebody else's by now, if it was taken for stale while we were stopped.
            if path.exists() and os.path.samestat(path.lstat(), mine):
                path.unlink()


def _make_way(path: Path) -> None:
    """Remove a socket that nobody listens on any more; leave everything else alone."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(there.st_mode):
        raise CannotListen(f"cannot listen on unix:{path}: there is a file that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full backlog is an answer, too
        refused = probe.connect_ex(str(path)) == errno.ECONNREFUSED
    if not refused:
        raise CannotListen(f"cannot listen on unix:{path}: somebody else does")
    path.unlink()


def _adopt(bind: Inherited, environ: Mapping[str, str]) -> Bound:
    """A socket by its number, which must be what it is said to be."""
    meant_for = environ.get("LISTEN_PID")
    if meant_for is not None and meant_for != str(os.getpid()):
        raise CannotListen(f"cannot listen on {bind}: LISTEN_PID says it is for another process")
    try:
        sock = socket.socket(fileno=bind.fd)
    except OSError:
        raise CannotListen(f"cannot listen on {bind}: it is no open socket") from None
    families = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
    listens = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if sock.type != socket.SOCK_STREAM or sock.family not in families or not listens:
        sock.detach()
        raise CannotListen(f"cannot listen on {bind}: it is no listening stream socket")
    os.set_inheritable(bind.fd, False)
    return Bound(sock)
