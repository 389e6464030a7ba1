"""Logging in and out: by a link that works once, or by a form that takes the token.

Where a browser does not say that its user has opened the link himself, by `emceepee open` or in
the line of the address, it takes a click: no page of anybody's logs in whoever looks at it, and
nobody uses a link up who only looks where it leads.
"""

from __future__ import annotations

from quart import Response, request

from ..logins import LASTS, LINK_LASTS, Holder
from ..visitors import LOGIN, cookie_name, is_opened_by_hand
from .common.pages import CSRF, NEXT, Data, Pages
from .common.requests import API, json_response, scope, to, visit


def add_to(pages: Pages) -> None:
    @pages.blueprint.get(LOGIN)
    async def login() -> Response:
        key = request.args.get("key")
        if key is None:
            return await pages.html(200, "login.html", _form())
        if not is_opened_by_hand(scope()):
            return await pages.html(200, "enter.html", {"key": key})
        return await enter(key)

    async def enter(key: str) -> Response:
        holder = visit().logins.open_link(key)
        if holder is None:
            said = "This link has been used, or is too old. `emceepee open` makes another one."
            return await pages.html(403, "login.html", _form(said))
        # No redirect: a browser that was sent here from elsewhere would leave the cookie out.
        return _with_cookie(await pages.html(200, "entered.html", {"next": "/"}), holder)

    @pages.blueprint.post(LOGIN)
    async def log_in() -> Response:
        form = await request.form
        if (key := form.get("key")) is not None:
            return await enter(key)
        token, tokens = form.get("token", "").strip(), visit().tokens
        principal = None if tokens is None else tokens.holder(token)
        if tokens is None or principal is None:
            return await pages.html(403, "login.html", _form("That is not a token of this daemon."))
        return _with_cookie(pages.go(_safe(form.get(NEXT))), Holder(principal, tokens.proof(token)))

    @pages.blueprint.post("/logout")
    async def log_out() -> Response:
        if (mine := visit().visitor.login) is not None:
            visit().logins.end(mine)
        answer = pages.go(LOGIN)
        answer.delete_cookie(cookie_name(scope()), path=to("/"))
        return answer

    @pages.blueprint.post(f"{API}/links")
    async def link() -> Response:
        """For `emceepee open`: where a browser is logged in."""
        holder, visitor = visit().visitor.token, visit().visitor
        if holder is None and visitor.login is None:
            return json_response(200, {"path": to("/")})
        holder = holder or visitor.login.holder  # type: ignore[union-attr]  # one of both is there
        key = visit().logins.make_link(holder)
        return json_response(
            200, {"path": f"{to(LOGIN)}?key={key}", "lasts_ms": round(LINK_LASTS * 1000)}
        )


def _form(wrong: str = "") -> Data:
    return {"wrong": wrong, "next": _safe(request.args.get(NEXT)), "csrf_field": CSRF}


def _safe(path: str | None) -> str:
    """Where to go afterwards: somewhere here."""
    is_ours = path is not None and path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if path is not None and is_ours and path.isprintable() else "/"


def _with_cookie(answer: Response, holder: Holder) -> Response:
    is_secure = "https" in (request.scheme, request.headers.get("X-Forwarded-Proto"))
    answer.set_cookie(
        cookie_name(scope()),
        visit().logins.begin(holder),
        max_age=round(LASTS),
        path=to("/"),
        secure=is_secure,  # who pretends that it is only keeps browsers from sending it
        httponly=True,
        samesite="Strict",
    )
    return answer
