"""A connection that cannot be made says why, and what to mend."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import trio
from mcp import MCPError

from emceepee_trio.backend.connections.failures import LONGEST, NOT_A_BUG, Failure, explain
from emceepee_trio.backend.connections.witness import Unanswered
from emceepee_trio.config import Reconnect, Retry, Server
from emceepee_trio.errors import ConnectFailed
from emceepee_trio.model.inherited import of_network
from emceepee_trio.model.states import BackendState
from fake_backends import raw
from http_server import QUIET, HttpServer, Reply, Request, Spoil, open_http_server
from last_words import LAST_WORDS
from recording import running

pytestmark = QUIET

GUARD = 60
SECRET = "hunter2"
HTTP = Server("it", url=f"http://user:{SECRET}@localhost/mcp?key={SECRET}")
LATER = {"restart": Retry(base_delay_ms=60_000), "reconnect": Reconnect(base_delay_ms=60_000)}
STDIO = Server("it", command="it")


async def failure_of(entry: dict[str, Any], *, final: bool = False) -> ConnectFailed:
    """What the first caller is told."""
    with trio.fail_after(GUARD):
        async with running(entry | LATER) as it:
            with pytest.raises(ConnectFailed) as caught:
                await it.backend.connection()
            backend = it.backend
            assert backend.state is (BackendState.ERROR if final else BackendState.RECONNECTING)
            assert (backend.next_try is None) is final
            assert backend.last_error is not None
            assert caught.value.message.startswith(f"server 'it': {backend.last_error}; ")
            assert caught.value.message.count("server 'it'") == 1
    details = caught.value.details or {}
    if final:
        assert caught.value.message.endswith("; correct it, then call reconnect_server")
        assert "next_retry_ms" not in details
    else:
        assert "await_activity tells when it is back" in caught.value.message
        assert 53_000 < details["next_retry_ms"] <= 66_000
    return caught.value


def answering(status: int, body: bytes = b"", kind: str = "text/html", **headers: str) -> Spoil:
    async def spoil(request: Request, reply: Reply) -> bool:
        await reply.whole(status, body, kind, **headers)
        return True

    return spoil


async def http_failure(
    spoil: Spoil, *, final: bool = False, path: str = "mcp", **entry: Any
) -> ConnectFailed:
    async with open_http_server(HttpServer(spoil=spoil)) as server:
        url = server.url.replace("mcp", path).replace("//", f"//user:{SECRET}@")
        entry["url"] = f"{url}?key={SECRET}"
        failure = await failure_of(entry, final=final)
    assert SECRET not in f"{failure.message} {failure.details}"
    return failure


async def test_a_command_that_ends_at_once_leaves_its_last_words() -> None:
    failure = await failure_of(raw("--exit-at-once", 3))
    words = "raw: cannot start, the configuration is missing"
    assert "process exited (code 3) before it answered" in failure.message
    assert f"it said: {words}" in failure.message
    assert failure.details is not None
    assert failure.details["code"] == 3
    assert failure.details["stderr"][-1] == words


UVX = LAST_WORDS["uvx: a certificate, and a hint"][0]


def installer(words: str, **entry: Any) -> dict[str, Any]:
    """A program that says this, and fails."""
    script = "import sys; sys.stderr.write(sys.argv[1]); sys.exit(2)"
    return {"command": sys.executable, "args": ["-c", script, words], **entry}


async def test_an_error_of_an_installer_says_what_its_environment_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in of_network(os.environ):
        monkeypatch.delenv(name)
    monkeypatch.setenv("https_proxy", f"http://{SECRET}@proxy.example")
    monkeypatch.setenv("CORP_CA", SECRET)
    failure = await failure_of(installer(UVX, env={"SSL_CERT_FILE": f"/{SECRET}"}))
    why = "mcp-server-git/`: invalid peer certificate: UnknownIssuer (around it: Caused by: Request"
    assert why in failure.message
    assert "its environment had SSL_CERT_FILE, https_proxy (" in failure.message
    assert "inherit_env" in failure.message
    assert failure.details is not None
    names = failure.details["environment"]
    assert {"PATH", "SSL_CERT_FILE", "https_proxy"} <= {*names}
    assert not {"CORP_CA", "EMCEEPEE_TAG"} & {*names}
    assert SECRET not in f"{failure.message} {failure.details}"


async def test_an_error_of_something_else_does_not() -> None:
    failure = await failure_of(installer(LAST_WORDS["node: a variable"][0]))
    assert "it said: Error: BRAVE_API_KEY environment variable is required" in failure.message
    assert "inherit_env" not in failure.message
    assert failure.details is not None
    assert "environment" not in failure.details


async def test_a_command_that_is_given_up_has_said_something_too() -> None:
    script = "import sys, time; sys.stderr.write('Waiting for a lock\\n'); time.sleep(600)"
    entry = {"command": sys.executable, "args": ["-c", script], "connect_timeout_ms": 1000}
    failure = await failure_of(entry)
    assert "no answer within 1000 ms; it said: Waiting for a lock" in failure.message


async def test_a_command_that_talks_of_something_else_is_not_waited_for() -> None:
    failure = await failure_of(raw("--garbage") | {"connect_timeout_ms": 500})
    assert "no answer within 500 ms" in failure.message


async def test_a_command_that_does_not_exist_says_where_it_was_looked_for() -> None:
    entry = {"command": "no-such-command", "env": {"PATH": "/nowhere:/elsewhere"}}
    failure = await failure_of(entry, final=True)
    assert "'no-such-command' not found" in failure.message
    assert "searched PATH /nowhere:/elsewhere" in failure.message
    assert failure.details == {"command": "no-such-command", "path": "/nowhere:/elsewhere"}


async def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    failure = await failure_of(raw() | {"cwd": str(folder)}, final=True)
    assert "cannot start" in failure.message
    assert str(folder) in failure.message


async def test_a_version_that_we_do_not_speak_is_named_with_ours() -> None:
    failure = await failure_of(raw("--version", "1999-01-01"))
    assert "speaks protocol version '1999-01-01'; we speak 20" in failure.message
    assert "2025-11-25" in failure.message


async def test_nobody_listens_there() -> None:
    async with open_http_server(HttpServer()) as server:
        await server.stop()
        failure = await failure_of({"url": server.url})
    assert f"cannot reach {server.url}" in failure.message


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_a_refused_credential_is_final_and_names_the_header(status: int, path: str) -> None:
    headers = {"X-Api-Key": SECRET}
    failure = await http_failure(answering(status), final=True, path=path, headers=headers)
    assert f"answered {status}; set or correct 'Authorization'" in failure.message
    assert "it has X-Api-Key" in failure.message
    assert failure.details == {"http_status": status}


@pytest.mark.parametrize("status", [404, 500])
async def test_a_status_is_in_the_message_and_in_the_details(status: int) -> None:
    failure = await http_failure(answering(status))
    assert f"refused to initialize (HTTP status {status})" in failure.message
    assert failure.details is not None
    assert failure.details["http_status"] == status


async def test_the_status_is_that_of_the_answer_and_not_of_the_probe() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        if request.method == "initialize":
            error = {"code": -32000, "message": "not today"}
            message = {"jsonrpc": "2.0", "id": request.message["id"], "error": error}
            await reply.json(message)
            return True
        await reply.whole(400)
        return True

    failure = await http_failure(spoil)
    assert "refused to initialize: not today" in failure.message
    assert failure.details is not None
    assert failure.details["code"] == -32000
    assert "http_status" not in failure.details


async def test_a_web_page_is_no_server() -> None:
    failure = await http_failure(answering(200, b"<html>Welcome!</html>"))
    assert "Unexpected content type: text/html" in failure.message


@pytest.mark.parametrize("path", ["mcp", "sse"])
async def test_a_redirect_to_somewhere_else_is_not_followed(path: str) -> None:
    async with open_http_server(HttpServer()) as elsewhere:
        location = elsewhere.url.replace("mcp", path)
        failure = await http_failure(answering(307, location=location), path=path)
        assert not elsewhere.requests
    assert "307" in failure.message or f"Redirect to {location} not followed" in failure.message


async def test_an_old_stream_that_ends_before_it_says_where_to_write() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        await reply.events()
        await reply.data(b": good bye\n\n")
        await reply.end()
        return True

    failure = await http_failure(spoil, path="sse")
    assert "ended before it named an endpoint" in failure.message


async def test_an_old_stream_that_is_a_web_page() -> None:
    failure = await http_failure(answering(200, b"<html>"), path="sse")
    assert "text/html" in failure.message


async def test_an_old_stream_with_an_endpoint_elsewhere() -> None:
    async def spoil(request: Request, reply: Reply) -> bool:
        await reply.events()
        await reply.event("http://elsewhere.example/messages", "endpoint")
        await trio.sleep_forever()
        return True

    failure = await http_failure(spoil, path="sse", connect_timeout_ms=500)
    assert "no answer within 500 ms" in failure.message or "elsewhere" in failure.message


async def test_a_host_that_is_no_name_is_an_error_and_no_crash() -> None:
    failure = await failure_of({"url": "http://\N{SNOWMAN}-.example/mcp"}, final=True)
    assert "cannot reach" in failure.message


async def test_a_body_that_is_too_long_is_not_an_unreachable_server() -> None:
    body = b'"' + b"x" * (17 << 20) + b'"'
    failure = await http_failure(answering(200, body, "application/json"))
    assert "it': message too long (limit 16777216 bytes)" in failure.message


async def test_a_compressed_body_is_refused_because_nobody_knows_how_long_it_is() -> None:
    spoil = answering(200, b"\x1f\x8b", "application/json", content_encoding="gzip")
    failure = await http_failure(spoil)
    assert "sent gzip, which we do not accept" in failure.message


# -- what cannot be provoked at will -------------------------------------------------------------


def explained(*errors: Exception, server: Server = STDIO) -> Failure:
    return explain(server, None, [], ExceptionGroup("", errors))


def test_the_echo_of_an_error_does_not_hide_it() -> None:
    cause = httpx2.ConnectError("connection refused")
    echoes = [Unanswered(), anyio.BrokenResourceError(), anyio.ClosedResourceError()]
    failure = explained(*echoes, ExceptionGroup("", [cause]), server=HTTP)
    assert failure.message == "cannot reach http://localhost/mcp?key=***: connection refused"
    assert explained(*echoes).message == "closed the connection before it answered"


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE])
def test_a_machine_at_its_limit_is_tried_again(number: int) -> None:
    assert not explained(OSError(number, "no room")).final
    assert explained(OSError(errno.EACCES, "not allowed")).final


def test_what_the_library_says_of_a_url_is_not_repeated() -> None:
    assert HTTP.url is not None
    response = httpx2.Response(502, request=httpx2.Request("GET", HTTP.url))
    with pytest.raises(httpx2.HTTPStatusError, match=SECRET) as caught:
        response.raise_for_status()
    failure = explained(caught.value, server=HTTP)
    assert failure.message == "http://localhost/mcp?key=*** answered 502"


def test_a_server_cannot_fill_our_messages() -> None:
    long = "x" * 1_000_000
    failure = explain(
        STDIO, None, [long] * 20, ExceptionGroup("", [MCPError(code=1, message=long)])
    )
    assert len(failure.message) < 2 * LONGEST
    assert len(str(failure.details)) < 30 * LONGEST


def test_bugs_are_not_taken_for_failures() -> None:
    assert not issubclass(AssertionError, NOT_A_BUG)
    assert not issubclass(KeyError, NOT_A_BUG)
    assert not issubclass(TypeError, NOT_A_BUG)
    assert not issubclass(RuntimeError, NOT_A_BUG)
