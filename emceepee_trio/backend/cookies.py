"""The cookies of one connection: those that a load balancer needs, and not all that anybody sets.

Every one of them is read with each answer and sent with each request, so both are bounded.
"""

from __future__ import annotations

from email.message import Message
from http.cookiejar import Cookie, CookieJar
from typing import Any
from urllib.request import Request

import attrs

from ..config.bounds import MAX_COOKIE, MAX_COOKIES

SET = "Set-Cookie"


class FewCookies(CookieJar):
    """At most `MAX_COOKIES`, of at most `MAX_COOKIE` bytes each; further ones are not kept."""

    def make_cookies(self, response: Any, request: Request) -> list[Cookie]:
        """Those of one answer; no more of them are read than are kept."""
        return list(super().make_cookies(_Answer(response.info()), request))  # type: ignore[arg-type]  # all that is asked of it

    def set_cookie(self, cookie: Cookie) -> None:
        known = (cookie.domain, cookie.path, cookie.name)
        if len(self) < MAX_COOKIES or known in {(c.domain, c.path, c.name) for c in self}:
            super().set_cookie(cookie)


@attrs.frozen
class _Answer:
    """Of which the first few cookies are shown."""

    _headers: Message

    def info(self) -> Message:
        shown = Message()
        found = [value for value in self._headers.get_all(SET, []) if len(value) <= MAX_COOKIE]
        for value in found[:MAX_COOKIES]:
            shown[SET] = value
        return shown
