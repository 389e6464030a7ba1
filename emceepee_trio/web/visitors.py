"""Who asks for what is not MCP: a program with a bearer token, a browser that has logged in, or
anybody, where no token is needed.

A cookie is sent along by a browser whatever page has it ask, and also from another port of this
machine: it counts only where the browser does not say that somebody else's page has asked, who is
told nothing where no token is needed either. What changes something has to prove more, see
:meth:`Visitor.may_change`.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator

import attrs

from ..config import LOCAL, OWN
from ..serving.asgi import Refused, Scope
from .authority import DEFAULT_PORTS, Authority, Origin
from .logins import Holder, Login, Logins
from .security import OPEN_PATHS, Security, Tokens, bearer_of

LOGIN = "/login"
STATIC = "/static/"
"""Whoever asks for these two may be nobody yet."""
VISIT = "visit"
"""Where the state of a scope has it."""


@attrs.frozen
class Visitor:
    principal: str
    """Nobody if it is empty."""
    csrf: str = attrs.field(repr=False)
    """What is written into its forms."""
    token: Holder | None = attrs.field(default=None, repr=False)
    """It has sent one, which no page of somebody else's can have it do."""
    login: Login | None = None

    @property
    def whose(self) -> str | None:
        """Whose things it sees: its own, or those of all, None, if it runs the daemon."""
        return None if self.principal in (OWN, LOCAL) else self.principal

    def may_change(self, scope: Scope, csrf: str) -> bool:
        """Whether this request is its own wish. *csrf* came with it."""
        if self.token is not None:
            return True
        given = _headers(scope)
        if self.principal == LOCAL and given.keys().isdisjoint(_OF_BROWSERS):
            # A program, which needs no token. A page cannot send this unasked.
            return given.get(b"content-type", b"").startswith(b"application/json")
        return is_own_origin(scope) and hmac.compare_digest(self.csrf.encode(), csrf.encode())


_OF_BROWSERS = {b"origin", b"cookie", b"referer", b"sec-fetch-site"}


@attrs.frozen
class Visit:
    """A request for anything but MCP, as the pages have it."""

    visitor: Visitor
    mount: str
    """Below which path we are, for links; nothing as a rule."""
    logins: Logins
    tokens: Tokens | None


def identify(scope: Scope, security: Security, logins: Logins, mount: str) -> Visit:
    """
    Raises:
        Refused: nobody we know; who reads HTML is sent to the form for the token.
    """
    return Visit(_visitor(scope, security, logins, mount), mount, logins, security.tokens)


def _visitor(scope: Scope, security: Security, logins: Logins, mount: str) -> Visitor:
    path, given = scope["path"], _headers(scope)
    if path in OPEN_PATHS:
        return Visitor(LOCAL, logins.csrf)
    if security.tokens is None:
        if b"origin" not in given and not _is_own_wish(scope):  # else it has been admitted
            raise Refused(403, "somebody else's page has asked; http.allowed_origins lists some")
        return Visitor(LOCAL, logins.csrf)
    if b"authorization" not in given:
        if path == LOGIN:
            # A browser that was sent here from elsewhere leaves the cookie out, and has it with the
            # form that it gets: who has logged in is nobody here, too.
            return Visitor("", logins.csrf)
        if (login := _login(scope, security.tokens, logins)) is not None:
            return Visitor(login.holder.principal, login.csrf, login=login)
        if path.startswith(STATIC):
            return Visitor("", logins.csrf)
        if scope["method"] == "GET" and b"text/html" in given.get(b"accept", b""):
            raise Refused(303, "log in first", headers=[(b"location", _to_login(scope, mount))])
    principal = security.principal(scope)
    proof = security.tokens.proof(bearer_of(scope) or "")
    return Visitor(principal, "", Holder(principal, proof))


def cookie_name(scope: Scope) -> str:
    """Cookies know no port: each daemon of a machine has a name of its own for it."""
    server = scope.get("server")
    return f"emceepee_{server[1]}" if server is not None and server[1] else "emceepee"


def is_own_origin(scope: Scope) -> bool:
    """Whether a page of ours has asked."""
    given = _headers(scope)
    origin = Origin.parse(given.get(b"origin", b"").decode("latin-1"))
    host = Authority.parse(given.get(b"host", b"").decode("latin-1"))
    if origin is None or host is None:
        return False
    port = host.port or DEFAULT_PORTS.get(origin.scheme)
    return (origin.host, origin.port) == (host.host, port)


def is_opened_by_hand(scope: Scope) -> bool:
    """Whether the browser says that its user has gone there, and no page has led him."""
    given = _headers(scope)
    said = given.get(b"sec-fetch-site"), given.get(b"sec-fetch-mode")
    is_seen = b"sec-purpose" not in given and b"purpose" not in given  # else it is fetched ahead
    return scope["method"] == "GET" and said == (b"none", b"navigate") and is_seen


def _is_own_wish(scope: Scope) -> bool:
    """Whether no browser says that a page of somebody else has asked, but for a link."""
    given = _headers(scope)
    site = given.get(b"sec-fetch-site", b"none")
    is_followed = scope["method"] == "GET" and given.get(b"sec-fetch-mode") == b"navigate"
    return is_followed or site in (b"same-origin", b"none")


def _login(scope: Scope, tokens: Tokens, logins: Logins) -> Login | None:
    if not _is_own_wish(scope):
        return None
    found = (logins.find(cookie, tokens) for cookie in _cookies(scope, cookie_name(scope)))
    return next(filter(None, found), None)


def _cookies(scope: Scope, name: str) -> Iterator[str]:
    """Those of that name. Others are of programs on other ports, which spell them as they like, and
    may have set one of that name, too.
    """
    for header, value in scope["headers"]:
        if header == b"cookie":
            for part in value.decode("latin-1").split(";"):
                key, _, said = part.strip().partition("=")
                if key == name:
                    yield said


def _to_login(scope: Scope, mount: str) -> bytes:
    """With where to go on, if that needs no quoting."""
    path: str = scope["path"]
    back = f"?next={path}" if path != "/" and _PLAIN.fullmatch(path) else ""
    return f"{mount}{LOGIN}{back}".encode()


_PLAIN = re.compile(r"/[\w.~/-]*", re.ASCII)


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """Those that matter here are not given twice, or it does not help who gives them."""
    return dict(scope["headers"])
