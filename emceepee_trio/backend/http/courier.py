"""Requests of one connection, with all that goes with each of them, to where they lead.

That is the headers of the entry, cookies, and what somebody has to show for whom we ask. Who is
sent elsewhere within the same origin goes there. Knows nothing of what messages say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import attrs
import httpx2

from ...config import Server
from .auth import ServerAuth
from .channels import Channels, Outgoing, Received, Target
from .cookies import SET, FewCookies
from .posts import Post
from .transport import shown_of

MOST_REDIRECTS = 20
FRAMING = {b"content-length", b"transfer-encoding"}
"""Headers that are ours to say, whatever an entry says."""
_REDIRECTS = {301, 302, 303, 307, 308}

OnResponse = Callable[[Received, Post | None], None]


def fixed_headers(server: Server, client: httpx2.AsyncClient) -> dict[bytes, bytes]:
    """What every request to *server* has, names in lower case: also what *client* adds to it."""
    assert server.url is not None
    request = client.build_request("GET", server.url)
    if request.url.username or request.url.password:
        shown = httpx2.BasicAuth(request.url.username, request.url.password)
        request = next(shown.auth_flow(request))
    headers = {name.lower(): value for name, value in request.headers.raw}
    return {name: value for name, value in headers.items() if name not in FRAMING}


@attrs.define(eq=False)
class Courier:
    channels: Channels
    _home: Target
    _fixed: Mapping[bytes, bytes]
    """What every request has."""
    _auth: ServerAuth | None
    _on_response: OnResponse
    """Sees each before anybody else does, and may refuse it."""
    _check_let_in: Callable[[int], None]
    """Likewise the status of one that is not asked for again."""
    _cookies: httpx2.Cookies = attrs.field(factory=lambda: httpx2.Cookies(FewCookies()), init=False)
    _has_cookies: bool = attrs.field(default=False, init=False)

    async def send(
        self,
        method: str,
        headers: Mapping[bytes, bytes],
        body: bytes | None = None,
        post: Post | None = None,
    ) -> Received:
        """The response that does not lead to another one.

        Raises:
            httpx2.RequestError: there is none.
        """
        request = Outgoing(method, self._home, {**self._fixed, **headers}, body)
        redirects, is_again = 0, False
        while True:
            shown = await self._show(request)
            response = await self.channels.send(self._with_cookies(request), post)
            try:
                self._keep_cookies(response)
                self._on_response(response, post)
                if response.status == 401 and not is_again and await self._is_refused(shown):
                    is_again = True
                else:
                    self._check_let_in(response.status)
                    there = leads_to(response) if redirects < MOST_REDIRECTS else None
                    if there is None:
                        return response
                    request = attrs.evolve(request, target=Target.of(there))
                    redirects, is_again = redirects + 1, False
            except BaseException:
                await response.aclose()  # noqa: ASYNC102, ASYNC120 - waits for nobody
                raise
            await response.aclose()

    async def _show(self, request: Outgoing) -> Mapping[str, str]:
        """What the server is shown of who asks: also put into *request*."""
        shown = await shown_of(self._auth)
        request.headers.update((k.lower().encode(), v.encode()) for k, v in shown.items())
        return shown

    async def _is_refused(self, shown: Mapping[str, str]) -> bool:
        """Whether something else can be shown by now."""
        return self._auth is not None and await self._auth.refused(shown)

    def _with_cookies(self, request: Outgoing) -> Outgoing:
        if not self._has_cookies:
            return request
        known = _as_httpx(request)
        self._cookies.set_cookie_header(known)
        cookie = known.headers.get("cookie", "").encode("latin-1")
        return attrs.evolve(request, headers={**request.headers, b"cookie": cookie})

    def _keep_cookies(self, response: Received) -> None:
        if any(name == SET for name, _ in response.headers):
            asked, headers = _as_httpx(response.request), response.headers
            self._cookies.extract_cookies(
                httpx2.Response(response.status, headers=headers, request=asked)
            )
            self._has_cookies = bool(self._cookies)


def _as_httpx(request: Outgoing) -> httpx2.Request:
    headers = list(request.headers.items())
    return httpx2.Request(request.method, request.target.url, headers=headers)


def named(response: Received, name: bytes) -> str | None:
    """What it says in a header, if it does."""
    found = [value for key, value in response.headers if key == name]
    return b", ".join(found).decode("latin-1") if found else None


def location(response: Received) -> httpx2.URL | None:
    """Where else it says to ask, whether that is followed or not.

    Raises:
        httpx2.RemoteProtocolError: nowhere.
    """
    said = named(response, b"location") if response.status in _REDIRECTS else None
    if said is None:
        return None
    with suppress(UnicodeError):
        said = said.encode("latin-1").decode()
    asked = response.request.target.url
    try:
        url = httpx2.URL(said)
        if url.scheme and not url.host:
            url = url.copy_with(host=asked.host)
        return asked.join(url) if url.is_relative_url else url
    except (httpx2.InvalidURL, ValueError) as error:
        raise httpx2.RemoteProtocolError(f"its location is no URL: {error}") from None


def leads_to(response: Received) -> httpx2.URL | None:
    """Where to ask, if the same can be asked there, and whoever is there may hear it.

    As the SDK has it: within the same origin, or to its equal over TLS, with nothing of its own to
    log in.
    """
    try:
        request, there = response.request, location(response)
    except httpx2.RemoteProtocolError:
        return None
    if there is None:
        return None
    asked = request.target.url
    is_same = response.status in {307, 308} or request.method == "GET"
    is_same |= response.status == 301 and request.method == "DELETE"
    if not is_same or (there.userinfo and there.userinfo != asked.userinfo):
        return None
    here = (asked.scheme, asked.host, asked.port)
    is_upgrade = here == ("http", there.host, None) and there.scheme == "https"
    if (there.scheme, there.host, there.port) == here or (is_upgrade and there.port is None):
        return there
    return None
