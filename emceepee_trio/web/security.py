"""Who may call us: the Host, the Origin and the bearer token of a request.

A page in a browser can reach a daemon on the same machine, also under a name of its own that it
has pointed there; Host and Origin tell it from us. Pure functions of the request and of what is
configured; where tokens come from is in `tokens.py`.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

import attrs

from ..config import LOCAL, Http
from ..serving.asgi import Refused, Scope
from .authority import DEFAULT_PORTS, Authority, Origin, address_of, spelled

Header = tuple[bytes, bytes]

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""The only ones that need no token."""
METHODS = b"GET, POST, DELETE, OPTIONS"
ALLOWED_HEADERS = (
    "Authorization",
    "Content-Type",
    "Last-Event-ID",
    "x-mcp-reconnect-session",
    "Mcp-Session-Id",
    "Mcp-Protocol-Version",
)
"""That pages may send; and any other ``Mcp-*`` they ask for."""
EXPOSED_HEADERS = b"Mcp-Session-Id, WWW-Authenticate"

_MCP_HEADER = re.compile(r"mcp-[!#$%&'*+.^_`|~0-9a-z-]+", re.IGNORECASE)
_BEARER = re.compile(r"bearer +([!-~]+)", re.IGNORECASE)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SINGLE = (b"host", b"origin", b"authorization")


@attrs.frozen
class Tokens:
    """Digests of bearer tokens, each with the name of its holder, who is the principal."""

    _digests: tuple[tuple[bytes, str], ...]

    @classmethod
    def of(cls, tokens: Iterable[tuple[str, str]]) -> Tokens:
        """From pairs of a holder's name and a token."""
        return cls(tuple((sha256(token.encode()).digest(), name) for name, token in tokens))

    def holder(self, token: str) -> str | None:
        """Takes the same time whichever token it is, or none."""
        digest = sha256(token.encode()).digest()
        found = None
        for known, name in self._digests:
            if hmac.compare_digest(known, digest):
                found = name
        return found

    def proof(self, token: str) -> bytes:
        """What may be kept of a token in its place, for :meth:`knows`."""
        return sha256(token.encode()).digest()

    def knows(self, principal: str, proof: bytes) -> bool:
        """Whether that is still a token of *principal*."""
        return any(
            name == principal and hmac.compare_digest(known, proof) for known, name in self._digests
        )


@attrs.frozen
class Security:
    """What is asked of every request."""

    tokens: Tokens | None
    """None: no token is needed."""
    names: frozenset[str]
    """That we were bound by."""
    _hosts: frozenset[Authority]
    _origins: frozenset[Origin]
    _where: str | None
    """Where the token is, if whoever asks is on this machine."""

    @classmethod
    def of(
        cls,
        http: Http,
        tokens: Tokens | None,
        names: Iterable[str] = (),
        where: str | None = None,
    ) -> Security:
        hosts = map(Authority.parse, http.allowed_hosts)
        origins = map(Origin.parse, http.allowed_origins)
        return cls(
            tokens,
            frozenset(ours for name in names if (ours := spelled(name))),
            frozenset(host for host in hosts if host is not None),
            frozenset(origin for origin in origins if origin is not None),
            where,
        )

    @property
    def _where_it_is(self) -> str:
        return f"it is in {self._where}" if self._where else "`emceepee serve` said where it is"

    def admit(self, scope: Scope) -> list[Header]:
        """The headers that a page needs to read our answer, whatever it will be.

        Raises:
            Refused: it was not meant for us, or comes from a page that may not call us.
        """
        given = _single_headers(scope)
        if not scope["path"].startswith("/"):
            raise Refused(400, "expected a path")
        if b"host" not in given:
            raise Refused(400, "Host is missing")
        host = Authority.parse(given[b"host"])
        if host is None or not self._is_ours(host, _server(scope)):
            raise Refused(
                403, "Host is not a name of this server; http.allowed_hosts may list others"
            )
        if b"origin" not in given:
            return []
        origin = Origin.parse(given[b"origin"])
        if origin is None or not self._may_call(origin, host, _server(scope)):
            raise Refused(403, "Origin may not call this server; http.allowed_origins lists some")
        return [
            (b"access-control-allow-origin", given[b"origin"].encode()),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        ]

    def _is_ours(self, host: Authority, server: Authority | None) -> bool:
        if not self._hosts.isdisjoint({host, Authority(host.host)}):
            return True
        if server is None:
            return host.host in _LOOPBACK  # no page reaches a Unix socket
        if (host.port or 80) != server.port:
            return False
        return (
            host.host == server.host
            or host.host in self.names
            or (_is_loopback(server) and host.host in _LOOPBACK)
        )

    def _may_call(self, origin: Origin, host: Authority, server: Authority | None) -> bool:
        if origin in self._origins:
            return True
        default = DEFAULT_PORTS.get(origin.scheme)
        if default is None:
            return False
        if (origin.host, origin.port) == (host.host, host.port or default):
            return True
        ours = server is not None and _is_loopback(server) and origin.port == server.port
        return ours and origin.scheme == "http" and origin.host in _LOOPBACK

    def principal(self, scope: Scope) -> str:
        """Who asks.

        Raises:
            Refused: nobody we know.
        """
        path = scope["path"]
        if self.tokens is None or path in OPEN_PATHS:
            return LOCAL
        if path.startswith("/.well-known/oauth-"):
            # Anything else makes clients begin with OAuth.
            raise Refused(404, "there is no OAuth here; send a bearer token")
        token = bearer_of(scope)
        holder = self.tokens.holder(token) if token is not None else None
        if holder is None:
            raise Refused(
                401,
                f"the bearer token is missing or wrong; {self._where_it_is}",
                headers=[(b"www-authenticate", b"Bearer")],
            )
        return holder


def bearer_of(scope: Scope) -> str | None:
    """The token that a request has brought."""
    found = _BEARER.fullmatch(_single_headers(scope).get(b"authorization", ""))
    return None if found is None else found[1]


def preflight(scope: Scope) -> list[Header]:
    """What an OPTIONS request is told, which carries no token."""
    asked = b", ".join(v for n, v in scope["headers"] if n == b"access-control-request-headers")
    named = {name.lower() for name in ALLOWED_HEADERS}
    others = [
        name
        for name in dict.fromkeys(part.strip() for part in asked.decode("latin-1").split(","))
        if _MCP_HEADER.fullmatch(name) and name.lower() not in named
    ]
    return [
        (b"allow", METHODS),
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", ", ".join((*ALLOWED_HEADERS, *others)).encode()),
        (b"access-control-max-age", b"600"),
    ]


def without_credentials(scope: Scope) -> Scope:
    """The request as everything behind us sees it."""
    return {**scope, "headers": [h for h in scope["headers"] if h[0] != b"authorization"]}


def _single_headers(scope: Scope) -> Mapping[bytes, str]:
    """Those on which everything depends. Given twice, two readers could each see another one."""
    found: dict[bytes, str] = {}
    for name, value in scope["headers"]:
        if name in _SINGLE:
            if name in found:
                raise Refused(400, f"{name.decode().title()} is given twice")
            found[name] = value.decode("latin-1")
    return found


def _server(scope: Scope) -> Authority | None:
    """The address that the request arrived at; None for a Unix socket."""
    server = scope.get("server")
    if server is None or server[1] is None:
        return None
    host, port = server
    return Authority(spelled(host.partition("%")[0]) or host, port)


def _is_loopback(server: Authority) -> bool:
    address = address_of(server.host)
    return address is not None and address.is_loopback
