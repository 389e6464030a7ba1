from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from emceepee_trio.config import LOCAL, Http
from emceepee_trio.serving.asgi import Refused
from emceepee_trio.web.security import Security, Tokens, preflight, without_credentials

HERE = ("127.0.0.1", 8080)
OPEN = Security.of(Http(), None)
TOKENS = Tokens.of([("ada", "s3cret"), ("token", "minted")])


def request(
    *headers: tuple[str, str],
    host: str | None = "127.0.0.1:8080",
    server: tuple[str, int] | None = HERE,
    path: str = "/mcp",
) -> dict[str, Any]:
    named = [] if host is None else [("host", host)]
    raw = [(name.encode(), value.encode("latin-1")) for name, value in [*named, *headers]]
    return {"type": "http", "method": "POST", "path": path, "headers": raw, "server": server}


def status(security: Security, scope: dict[str, Any]) -> int:
    """What a request is refused with; 200 if it is not."""
    try:
        security.admit(scope)
        security.principal(scope)
    except Refused as refused:
        return refused.status
    return 200


def asked(host: str, server: tuple[str, int] | None = HERE, **allowed: Any) -> int:
    """The answer to that Host."""
    names = allowed.pop("names", ())
    return status(Security.of(Http(**allowed), None, names), request(host=host, server=server))


def called(
    origin: str, host: str = "127.0.0.1:8080", server: tuple[str, int] | None = HERE, **http: Any
) -> int:
    """The answer to that Origin."""
    security = Security.of(Http(**http), None)
    return status(security, request(("origin", origin), host=host, server=server))


# -- Host ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8080",
        "localhost:8080",
        "LocalHost:8080",
        "localhost.:8080",
        "[::1]:8080",
        "[0:0::0:1]:8080",
        "[::ffff:127.0.0.1]:8080",
    ],
)
def test_our_own_names_on_loopback_are_ours(host: str) -> None:
    assert asked(host) == 200
    assert asked(host, ("::1", 8080)) == 200
    assert asked(host, ("::ffff:127.0.0.1", 8080)) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8080",
        "127.0.0.1.evil.example:8080",
        "localhost.evil:8080",
        "evil-localhost:8080",
        "localhost:8080.evil.example",
        "127.0.0.1",
        "localhost:80",
        "127.0.0.1:8081",
        "0.0.0.0:8080",
        "127.1:8080",
        "2130706433:8080",
        "0x7f.1:8080",
        "localhost:8080@evil.example",
        "evil@localhost:8080",
        "localhost:8080, evil",
        "",
        "localhost:8080/",
        "localhost :8080",
        "[::1:8080",
        "[127.0.0.1]:8080",
        "[::1%lo]:8080",
        "localhost..:8080",
        "localhost:",
        "localhost:0",
        "localhost:99999",
        ":8080",
        ".",
        "192.168.1.5:8080",
        "localhöst:8080",
        "１".encode().decode("latin-1"),
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    assert asked(host) == 403


def test_a_request_for_nobody_is_refused() -> None:
    assert status(OPEN, request(host=None)) == 400


def test_the_address_that_was_connected_to_is_ours_and_loopback_then_is_not() -> None:
    server = ("192.168.1.5", 8080)
    assert asked("192.168.1.5:8080", server) == 200
    assert asked("192.168.1.6:8080", server) == 403
    assert asked("localhost:8080", server) == 403
    assert asked("[fe80::1]:8080", ("fe80::1%eth0", 8080)) == 200


def test_a_name_that_was_bound_is_ours() -> None:
    server = ("192.168.1.5", 8080)
    assert asked("Box.Example:8080", server, names=["box.example"]) == 200
    assert asked("box.example:8081", server, names=["box.example"]) == 403
    assert asked("other.example:8080", server, names=["box.example"]) == 403


def test_a_port_need_not_be_said_if_it_is_that_of_http() -> None:
    assert asked("localhost", ("127.0.0.1", 80)) == 200
    assert asked("localhost:80", ("127.0.0.1", 80)) == 200


def test_allowed_hosts_are_ours() -> None:
    http: Mapping[str, Any] = {"allowed_hosts": ("Proxy.example", "other.example:444")}
    assert asked("proxy.example", **http) == 200
    assert asked("proxy.example:1234", **http) == 200
    assert asked("other.example:444", **http) == 200
    assert asked("other.example", **http) == 403
    assert asked("other.example:445", **http) == 403
    assert asked("sub.proxy.example", **http) == 403


def test_over_a_unix_socket_only_loopback_names_are_ours() -> None:
    assert asked("localhost", None) == 200
    assert asked("127.0.0.1:1234", None) == 200
    assert asked("evil.example", None) == 403
    assert asked("evil.example", ("/run/s", None), allowed_hosts=()) == 403  # type: ignore[arg-type]  # as ASGI has it for sockets


@pytest.mark.parametrize("path", ["http://127.0.0.1:8080/mcp", "*", "", "mcp"])
def test_what_is_no_path_is_refused(path: str) -> None:
    assert status(OPEN, request(path=path)) == 400


# -- Origin --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:8080",
        "http://localhost:8080",
        "HTTP://LocalHost:8080",
        "http://[::1]:8080",
        "https://127.0.0.1:8080",
    ],
)
def test_pages_of_our_own_may_call(origin: str) -> None:
    assert called(origin) == 200


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "*",
        "http://evil.example",
        "http://evil.example:8080",
        "http://localhost",
        "http://localhost:8081",
        "https://localhost:8080",
        "http://localhost:8080/",
        "http://localhost:8080.evil.example",
        "http://localhost:8080@evil.example",
        "http://evil@localhost:8080",
        "http://localhost:8080 http://evil.example",
        "localhost:8080",
        "file://",
        "chrome-extension://abcdefgh",
        "http://127.0.0.1.evil.example:8080",
        "ftp://127.0.0.1:8080",
        "http://192.168.1.5:8080",
        "http:/localhost:8080",
    ],
)
def test_other_pages_may_not(origin: str) -> None:
    assert called(origin) == 403


def test_evil_that_calls_us_evil_may_not() -> None:
    """Every HTTP proxy that was tried answered this: a name that points here is no proof."""
    assert called("http://evil.example:8080", host="evil.example:8080") == 403


def test_pages_on_the_loopback_of_others_may_not_call() -> None:
    server = ("192.168.1.5", 8080)
    assert called("http://localhost:8080", "192.168.1.5:8080", server) == 403
    assert called("http://192.168.1.5:8080", "192.168.1.5:8080", server) == 200


def test_behind_a_proxy_pages_of_the_same_name_may_call() -> None:
    http: Mapping[str, Any] = {"allowed_hosts": ("proxy.example",)}
    assert called("https://proxy.example", "proxy.example", **http) == 200
    assert called("https://proxy.example:444", "proxy.example:444", **http) == 200
    assert called("https://proxy.example:444", "proxy.example", **http) == 403


def test_allowed_origins_may_call() -> None:
    http: Mapping[str, Any] = {"allowed_origins": ("https://app.example", "app://x")}
    assert called("https://app.example", **http) == 200
    assert called("https://App.example:443", **http) == 200
    assert called("app://x", **http) == 200
    assert called("http://app.example", **http) == 403
    assert called("https://app.example:444", **http) == 403
    assert called("https://app.example.evil", **http) == 403


@pytest.mark.parametrize("name", ["host", "origin", "authorization"])
def test_what_everything_depends_on_must_not_be_said_twice(name: str) -> None:
    one = {"host": "127.0.0.1:8080", "origin": "http://localhost:8080"}.get(name, "Bearer s3cret")
    headers = [(name, one)] * (1 if name == "host" else 2)
    assert status(Security.of(Http(), TOKENS), request(*headers)) == 400


def test_a_page_that_may_call_may_read_the_answer_and_no_other() -> None:
    headers = dict(OPEN.admit(request(("origin", "http://localhost:8080"))))
    assert headers[b"access-control-allow-origin"] == b"http://localhost:8080"
    assert headers[b"access-control-expose-headers"] == b"Mcp-Session-Id, WWW-Authenticate"
    assert headers[b"vary"] == b"Origin"
    assert b"access-control-allow-credentials" not in headers
    assert OPEN.admit(request()) == []


def test_a_page_may_send_what_mcp_needs_and_nothing_else() -> None:
    wanted = (
        "access-control-request-headers",
        "x-evil, mcp-name,Mcp-Param-A, cookie, mcp-, mcp-a b",
    )
    headers = dict(preflight(request(wanted)))
    allowed = headers[b"access-control-allow-headers"].decode().split(", ")
    assert allowed == [
        "Authorization",
        "Content-Type",
        "Last-Event-ID",
        "x-mcp-reconnect-session",
        "Mcp-Session-Id",
        "Mcp-Protocol-Version",
        "mcp-name",
        "Mcp-Param-A",
    ]
    assert headers[b"access-control-allow-methods"] == b"GET, POST, DELETE, OPTIONS"


# -- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "principal"),
    [("Bearer s3cret", "ada"), ("bearer s3cret", "ada"), ("BEARER   minted", "token")],
)
def test_a_token_tells_who_asks(authorization: str, principal: str) -> None:
    scope = request(("authorization", authorization))
    assert Security.of(Http(), TOKENS).principal(scope) == principal


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer",
        "Bearer ",
        "s3cret",
        "Basic s3cret",
        "Bearer s3cre",
        "Bearer s3cret2",
        "Bearer S3CRET",
        "Bearer s3cret minted",
        "Bearer s3cret,",
        "Bearer\ts3cret",
        "Bearer ada",
        "Bearer s3cret\x00",
        "Bearer s3crét",
    ],
)
def test_anything_else_tells_nothing(authorization: str) -> None:
    with pytest.raises(Refused) as caught:
        Security.of(Http(), TOKENS).principal(request(("authorization", authorization)))
    assert caught.value.status == 401
    assert caught.value.headers == [(b"www-authenticate", b"Bearer")]


def test_a_token_counts_only_as_a_header() -> None:
    scope = request(("cookie", "token=s3cret")) | {"query_string": b"token=s3cret"}
    assert status(Security.of(Http(), TOKENS), scope) == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_monitors_need_no_token_but_are_not_at_any_name(path: str) -> None:
    security = Security.of(Http(), TOKENS)
    assert status(security, request(path=path)) == 200
    assert status(security, request(path=path, host="evil.example")) == 403


@pytest.mark.parametrize(
    "path",
    ["/mcp", "/", "/status", "/logs", "/healthz/", "//healthz", "/healthz/../status", "/readyz2"],
)
def test_everything_else_does(path: str) -> None:
    assert status(Security.of(Http(), TOKENS), request(path=path)) == 401


def test_there_is_no_oauth() -> None:
    security = Security.of(Http(), TOKENS)
    for path in ("oauth-protected-resource", "oauth-authorization-server", "oauth-x/mcp"):
        assert status(security, request(path=f"/.well-known/{path}")) == 404


def test_without_tokens_everybody_is_local() -> None:
    assert OPEN.principal(request()) == LOCAL
    assert OPEN.principal(request(("authorization", "Bearer whatever"))) == LOCAL


def test_a_credential_goes_no_further() -> None:
    scope = request(("authorization", "Bearer s3cret"), ("accept", "*/*"))
    seen = without_credentials(scope)
    assert seen["headers"] == [(b"host", b"127.0.0.1:8080"), (b"accept", b"*/*")]
    assert "s3cret" not in repr(TOKENS)


@given(st.dictionaries(st.text("ab"), st.text("xy", min_size=1), min_size=1), st.text("xy"))
def test_a_token_is_that_of_its_holder(tokens: dict[str, str], token: str) -> None:
    assume(len(set(tokens.values())) == len(tokens))
    holders = {held: name for name, held in tokens.items()}
    assert Tokens.of(tokens.items()).holder(token) == holders.get(token)


# -- whatever is sent ------------------------------------------------------------------------------

hostile = st.text(st.sampled_from("aA0.:[]/@%?#, \t\r\n\0*-_\\\xe9")) | st.text(
    st.characters(max_codepoint=255)
)
near = st.builds(
    lambda head, text, tail: head + text + tail,
    st.sampled_from(["", "http://", "https://", "localhost", "http://localhost"]),
    hostile,
    st.sampled_from(["", "localhost:8080", ":8080", ".", "127.0.0.1:8080"]),
)


@given(near, near)
@example("http://localhost:8080", "localhost:8080\n")
@example("http://localhost:8080\n", "localhost:8080")
def test_nothing_that_can_be_sent_is_more_than_refused(origin: str, host: str) -> None:
    ours = {"localhost", "localhost.", "127.0.0.1", "[::1]"}
    if asked(host) == 200:
        assert host.lower().removesuffix(":8080") in ours
    if called(origin) == 200:
        head, _, rest = origin.lower().partition("://")
        assert head in {"http", "https"}
        assert rest.removesuffix(":8080") in ours
