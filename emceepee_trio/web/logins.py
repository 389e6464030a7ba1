"""Who has logged in to the page: cookies, and links that log a browser in once.

Both are kept as digests. What stands behind a login is a bearer token: where that is one no more,
nor is the login. Everything is forgotten with the daemon. Knows no HTTP.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

import attrs
import trio

from .security import Tokens

LINK_LASTS = 60.0
"""Seconds in which a link may be opened."""
IDLE = 12 * 3600.0
"""Seconds after which a login ends that nobody has used."""
LASTS = 7 * 24 * 3600.0
"""Seconds after which it ends at any rate."""
MAX_LINKS = 20
"""Links of one principal that wait to be opened; the oldest makes room."""
MAX_LOGINS = 20
"""Logins of one principal; the one that was used the longest ago makes room."""


@attrs.frozen
class Holder:
    """Somebody who has shown a token, and a digest of that."""

    principal: str
    proof: bytes


@attrs.define(eq=False)
class Login:
    """One browser."""

    holder: Holder
    began: float
    used: float
    csrf: str = attrs.field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    """What each change that it asks for has to bring along."""


@attrs.define(eq=False)
class Logins:
    """Of one daemon."""

    clock: Callable[[], float] = trio.current_time
    csrf: str = attrs.field(factory=lambda: secrets.token_urlsafe(24), repr=False)
    """The same for who needs no login."""
    _links: OrderedDict[bytes, tuple[Holder, float]] = attrs.field(factory=OrderedDict, init=False)
    """By their digests: whose they are, and until when."""
    _logins: OrderedDict[bytes, Login] = attrs.field(factory=OrderedDict, init=False)
    """By the digests of their cookies; the one that was used last is the last."""

    def make_link(self, holder: Holder) -> str:
        """A key that logs in one browser."""
        theirs = [each for each, (other, _) in self._links.items() if _same(other, holder)]
        for each in theirs[: max(0, len(theirs) - MAX_LINKS + 1)]:
            del self._links[each]
        key = secrets.token_urlsafe(32)
        self._links[_digest(key)] = (holder, self.clock() + LINK_LASTS)
        return key

    def open_link(self, key: str) -> Holder | None:
        """Whose it is; None if there is no such link, or no more."""
        holder, until = self._links.pop(_digest(key), (None, 0.0))
        return holder if self.clock() < until else None

    def begin(self, holder: Holder) -> str:
        """The value of a cookie."""
        theirs = [each for each, other in self._logins.items() if _same(other.holder, holder)]
        for each in theirs[: max(0, len(theirs) - MAX_LOGINS + 1)]:
            del self._logins[each]
        cookie, now = secrets.token_urlsafe(32), self.clock()
        self._logins[_digest(cookie)] = Login(holder, now, now)
        return cookie

    def find(self, cookie: str, tokens: Tokens) -> Login | None:
        """The login of that cookie, which is used now."""
        digest, now = _digest(cookie), self.clock()
        login = self._logins.get(digest)
        if login is None:
            return None
        is_known = tokens.knows(login.holder.principal, login.holder.proof)
        if not is_known or now >= min(login.used + IDLE, login.began + LASTS):
            del self._logins[digest]
            return None
        login.used = now
        self._logins.move_to_end(digest)
        return login

    def end(self, login: Login) -> None:
        self._logins = OrderedDict((k, v) for k, v in self._logins.items() if v is not login)


def _same(one: Holder, other: Holder) -> bool:
    return one.principal == other.principal


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()
