"""The cookies of one connection: those that a load balancer needs, and not all that anybody sets.

Every one of them is read with each answer and sent with each request, so both are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from email.message import Message
from http.cookiejar import Cookie, CookieJar
from itertools import islice
from typing import Any
from urllib.request import Request

import attrs

from ...config.bounds import MAX_COOKIE, MAX_COOKIES

SET = b"set-cookie"


class FewCookies(CookieJar):
    """At most `MAX_COOKIES`, of at most `MAX_COOKIE` bytes of ASCII; others are not kept."""

    def extract_cookies(self, response: Any, request: Request) -> None:
        """Those of one answer; no more of them are read than are kept."""
        super().extract_cookies(_Answer.of(response.response.headers.raw), request)  # type: ignore[arg-type]  # all that is asked of it

    def make_cookies(self, response: Any, request: Request) -> list[Cookie]:
        """Those for which there is room."""
        known, found = {_place(cookie) for cookie in self}, []
        for cookie in super().make_cookies(response, request):
            if len(known) < MAX_COOKIES or _place(cookie) in known:
                known.add(_place(cookie))
                found.append(cookie)
        return found


def _may_be_kept(value: bytes) -> bool:
    return len(value) <= MAX_COOKIE and value.isascii()


def _place(cookie: Cookie) -> tuple[str, str, str]:
    """What another one has that takes its place."""
    return cookie.domain, cookie.path, cookie.name


@attrs.frozen
class _Answer:
    """Of which the first few cookies are shown, and nothing else."""

    _shown: Message

    @classmethod
    def of(cls, headers: Iterable[tuple[bytes, bytes]]) -> _Answer:
        found = (v for k, v in headers if k.lower() == SET and _may_be_kept(v))
        shown = Message()
        for value in islice(found, MAX_COOKIES):
            shown[SET.decode()] = value.decode("ascii")
        return cls(shown)

    def info(self) -> Message:
        return self._shown
