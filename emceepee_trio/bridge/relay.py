"""Whose message goes where: a client's to the daemon, the daemon's to the client.

Each request of the client is a POST in a thread of its own, whose answers are written as they come.
A client of the handshake era has a session that the daemon names, and a stream for what the daemon
says of its own accord; one of the modern era has a workspace that is named here, and that a
subscription of ours keeps for as long as we are there. Both end with the client.

The daemon may be away for a while: it is restarted, a connection breaks. What it cannot have taken
waits for it; a stream that broke off is resumed, which works while the daemon lives; else the
client is told that its request may have run. A session that is gone is opened again, with what the
client had said at first.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from .events import EventReader
from .http import CHUNK, Address, DaemonHttp, Gone, Interrupt, Response
from .modern import CAPABILITIES, CLIENT_INFO, VERSION, modern_headers, version_of

Json: TypeAlias = dict[str, Any]
RequestId: TypeAlias = str | int
Write: TypeAlias = Callable[[bytes], None]

MCP = "/mcp"
JSON, SSE = "application/json", "text/event-stream"
PATIENCE = 15.0
"""Seconds that the daemon may be away before a request fails; a service is back in less."""
PAUSES = (0.1, 0.2, 0.5, 1.0)
"""Seconds between tries; the last goes on."""
BEGINS = 1.0
"""Seconds for a request to get to the daemon before it is cancelled there."""
RESUMING = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each try to resume an answer's stream."""
LONGEST = 256 * 1024 * 1024
"""Bytes of an answer."""
AT_ONCE = 256
"""Requests under way, as many as a session may have; with more, the client's input waits."""

PARSE_ERROR, INVALID_REQUEST, INTERNAL, LOST = -32700, -32600, -32603, -32000


class Unanswerable(Exception):
    """There is no answer, and will be none; says why, and what to do."""

    def __init__(self, why: str, *, may_have_run: bool = False) -> None:
        super().__init__(why)
        self.may_have_run = may_have_run


class _NoSession(Exception):
    """The daemon does not know our session any more, and has run nothing."""


class _Asked:
    """A request of the client, until it is answered."""

    def __init__(self, message: Json) -> None:
        self.message = message
        self.cut = Interrupt()
        """Set when nobody wants the answer any more."""
        self.begun = threading.Event()
        """The daemon has it, or never will."""
        self.is_cancelled = False
        """By the client, which may say so again."""


class _Session:
    """Of the handshake era, as the daemon has opened it."""

    def __init__(self, session_id: str, version: str) -> None:
        self.headers = {"Mcp-Session-Id": session_id, "MCP-Protocol-Version": version}


class Relay:
    """One client."""

    def __init__(
        self,
        address: Address,
        find_token: Callable[[], str | None],
        write: Write,
        view: str | None = None,
        server: str | None = None,
    ) -> None:
        self._http = DaemonHttp(address)
        self._find_token = find_token  # asked again when the daemon wants another one
        self._token = find_token()
        self._write = write
        shown = {} if view is None else {"view": view}
        path = MCP if server is None else f"/servers/{quote(server, safe='')}/mcp"
        self._endpoint = f"{path}?{urlencode(shown)}" if shown else path
        workspace = {"session": f"stdio-{os.urandom(8).hex()}", **shown}
        self._workspace = f"{path}?{urlencode(workspace)}"
        self._is_modern = False
        self._session: _Session | None = None
        self._joining = threading.Lock()
        self._said: dict[str, Json] = {}
        """By method, what another session has to be told, too."""
        self._asked: dict[RequestId, _Asked] = {}
        self._writing = 0
        """Answers that are on their way to the client."""
        self._changed = threading.Condition()
        """Of the requests under way, of those, and of these two."""
        self._is_away = False
        """Nobody is there who would take anything."""
        self._over: str | None = None
        """Why nothing is answered any more."""
        self._ended = threading.Event()
        """Set with it, for who waits for a daemon."""

    # -- what the client says

    def take(self, line: bytes) -> None:
        """A line of the client: a message, or (2025-03-26) a list of them."""
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            self._fail(None, PARSE_ERROR, f"not JSON: {error}")
            return
        for message in data if isinstance(data, list) and data else [data]:
            if not isinstance(message, dict):
                self._fail(None, INVALID_REQUEST, "not a JSON-RPC 2.0 message")
            elif "method" in message and type(message.get("id")) in (str, int):
                self._take_request(message["id"], message)
            elif message.get("method") == "notifications/cancelled":
                self._take_cancelled(message)
            elif self._over is None:
                self._say(message)
                if message.get("method") == "notifications/initialized":
                    self._start(self._listen, self._session)

    def _take_request(self, request_id: RequestId, message: Json) -> None:
        asked = _Asked(message)
        with self._changed:
            if request_id in self._asked:
                self._fail(request_id, INVALID_REQUEST, "a request of that id is under way")
                return
            self._changed.wait_for(lambda: self._ended.is_set() or len(self._asked) < AT_ONCE)
            if self._over is not None:
                self._write(_error(request_id, LOST, self._over, may_have_run=False))
                return
            self._asked[request_id] = asked
        if version_of(message) is not None and not self._is_modern:
            self._is_modern = True
            self._start(self._keep_workspace, message)
        if message["method"] == "initialize":  # all else waits for what it opens
            self._ask(request_id, asked)
        else:
            self._start(self._ask, request_id, asked)

    def _take_cancelled(self, notice: Json) -> None:
        params = notice.get("params")
        request_id = params.get("requestId") if isinstance(params, dict) else None
        asked = self._asked.get(request_id) if isinstance(request_id, str | int) else None
        if asked is not None and not asked.is_cancelled:
            asked.is_cancelled = True
            self._start(self._cancel, asked, notice)

    def _cancel(self, asked: _Asked, notice: Json) -> None:
        # On another connection it could be faster than what it cancels; but a daemon may be silent
        # for as long as that takes.
        asked.begun.wait(BEGINS)
        self._say(notice, version_of(asked.message))
        # In the modern era closing is the cancellation; in the other nothing comes any more.
        asked.cut.set()

    def _start(self, run: Callable[..., None], *args: object) -> None:
        threading.Thread(target=run, args=args, daemon=True).start()

    def wait_taken(self, is_taken: Callable[[], bool]) -> None:
        """Until all that the client has said is under way, unless nobody is there to take it."""
        with self._changed:
            self._changed.wait_for(lambda: is_taken() or self._is_away, PATIENCE)

    def has_taken(self) -> None:
        """Tell who waits for that."""
        with self._changed:
            self._changed.notify_all()

    def wait_answered(self, patience: float) -> bool:
        """Until nothing is under way that can be answered, or that time is over; whether it was."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._writing and (not self._asked or self._is_away), patience
            )

    def give_up(self) -> None:
        """Answer what is under way, and what may come: there will be no other answer."""
        with self._changed:
            self._over = "standard input has ended, so emceepee stdio ends"
            if self._is_away:
                self._over += f"; no daemon answers at {self._http.address}"
            left, self._asked = self._asked, {}
            self._ended.set()
            self._changed.notify_all()
        for request_id, asked in left.items():
            asked.cut.set()
            if not asked.is_cancelled:
                may_have_run = asked.begun.is_set()
                self._write(_error(request_id, LOST, self._over, may_have_run))

    def end(self) -> None:
        """The client is gone: so shall be what the daemon keeps for it."""
        kept = [] if self._session is None else [(self._endpoint, self._session.headers)]
        if self._is_modern:
            kept.append((self._workspace, {}))
        for target, headers in kept:
            try:
                with self._try("DELETE", target, headers) as response:
                    response.read(CHUNK)
            except Gone:
                pass  # and with it our session

    # -- requests, and what becomes of them

    def _ask(self, request_id: RequestId, asked: _Asked) -> None:
        try:
            answer = self._answer_to(asked)
        except Unanswerable as lost:
            answer = _error(request_id, LOST, str(lost), lost.may_have_run)
        except Exception as error:  # noqa: BLE001 - of this request alone; who asked must hear it
            said = f"emceepee stdio: {error or type(error).__name__}"
            answer = _error(request_id, INTERNAL, said, may_have_run=True)
        finally:
            asked.begun.set()
            with self._changed:
                is_wanted = self._asked.pop(request_id, None) is not None
                self._writing += 1
                self._changed.notify_all()
        try:
            if answer is not None and is_wanted and not asked.cut.is_set:
                self._write(answer)
        finally:
            with self._changed:
                self._writing -= 1
                self._changed.notify_all()

    def _answer_to(self, asked: _Asked) -> bytes | None:
        """What the client is told; None if it has cancelled the request.

        Raises:
            Lost: there will be no answer.
        """
        message = asked.message
        if message["method"] == "initialize":
            self._said = {"initialize": message}
            self._session, opened = self._open(message, self._session)
            return opened
        if message["method"] == "logging/setLevel":
            self._said["logging/setLevel"] = message
        session, events = self._session, EventReader()
        answer, why = None, "it ended the stream"
        try:
            try:
                answer = self._post(message, session, events, asked)
            except _NoSession:
                session = self._another(session)
                answer = self._post(message, session, events, asked)
        except (Gone, _NoSession) as gone:
            why = str(gone)
        for pause in RESUMING:
            if answer is not None or asked.cut.is_set:
                return answer
            if session is None or events.last_id is None:
                break
            time.sleep(pause)
            answer = self._resumed(session, events, asked)
        if asked.cut.is_set:
            return None
        raise Unanswerable(self._broke_off(why), may_have_run=True)

    def _post(
        self,
        message: Json,
        session: _Session | None,
        events: EventReader,
        asked: _Asked | None = None,
        write: Write | None = None,
    ) -> bytes | None:
        """Say *message*; its answer, unless the stream that it comes on ends before.

        Raises:
            Gone: it broke off, and may have been run.
            Lost: nobody is there, or it will not have us.
        """
        target, headers = self._addressed(message, session)
        with self._request("POST", target, headers, message, asked) as response:
            if asked is not None:
                asked.begun.set()
            if response.status == 404 and session is not None:
                raise _NoSession("the session is gone")
            return self._answer_in(response, message.get("id"), events, write or self._write)

    def _addressed(self, message: Json, session: _Session | None) -> tuple[str, dict[str, str]]:
        headers = {"Content-Type": JSON, "Accept": f"{JSON}, {SSE}"}
        version = version_of(message)
        if version is not None:
            return self._workspace, headers | modern_headers(message, version)
        return self._endpoint, headers | (session.headers if session is not None else {})

    def _answer_in(
        self, response: Response, request_id: Any, events: EventReader, write: Write
    ) -> bytes | None:
        """The answer in a response; whatever else is on its stream is written at once."""
        if response.content_type == SSE:
            answer = None
            while chunk := response.read_some():
                for data in events.feed(chunk):
                    said = json.loads(data)
                    if isinstance(said, dict) and "method" not in said:
                        answer = data
                    else:
                        write(data)
            return answer
        body = response.read(LONGEST)
        if response.status == 202:
            return b""
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or "jsonrpc" not in said:
            raise Unanswerable(
                f"what answers at {self._http.address} is no emceepee daemon "
                f"(status {response.status})"
            )
        if said.get("id") is None:  # refused before anybody looked at it
            return json.dumps({**said, "id": request_id}).encode()
        return body

    def _resumed(self, session: _Session, events: EventReader, asked: _Asked) -> bytes | None:
        """The rest of a stream that broke off; None if it breaks off again.

        Raises:
            Lost: nobody knows that stream any more.
        """
        assert events.last_id is not None
        events.broke_off()
        headers = session.headers | {"Accept": SSE, "Last-Event-ID": events.last_id}
        try:
            with self._request("GET", self._endpoint, headers, None, asked) as response:
                if response.status == 200:
                    return self._answer_in(response, None, events, self._write)
        except Gone:
            return None
        except Unanswerable as lost:
            raise Unanswerable(str(lost), may_have_run=True) from None
        raise Unanswerable(self._broke_off("it was started anew"), may_have_run=True)

    def _broke_off(self, why: str) -> str:
        return (
            f"the daemon at {self._http.address} broke off before it answered ({why}); the outcome "
            "is unknown, it may have run"
        )

    @contextmanager
    def _request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        message: Json | None = None,
        asked: _Asked | None = None,
    ) -> Generator[Response]:
        """The response of a daemon that is there, waiting for one if need be.

        Raises:
            Gone: it broke off; in the block, too.
            Lost: nobody is there, or it wants another token.
        """
        body = None if message is None else json.dumps(message).encode()
        cut = None if asked is None else asked.cut
        until, pauses, is_new_token = time.monotonic() + PATIENCE, iter(PAUSES), False
        while True:
            try:
                with self._try(method, target, headers, body, cut) as response:
                    self._is_away = False
                    if response.status == 401 and is_new_token:
                        raise Unanswerable(
                            f"the daemon at {self._http.address} wants another token; set "
                            "EMCEEPEE_TOKEN, or name its --state-dir"
                        )
                    is_away = response.status == 503 and time.monotonic() < until
                    if response.status != 401 and not is_away:
                        yield response
                        return
                if not is_away:
                    self._token, is_new_token = self._find_token(), True
                    continue
            except Gone as gone:
                if gone.was_sent:
                    raise
                with self._changed:
                    self._is_away = True
                    self._changed.notify_all()
                if time.monotonic() > until:
                    raise Unanswerable(
                        f"no daemon answers at {self._http.address} ({gone}); `emceepee serve` "
                        "starts one"
                    ) from None
            if self._ended.wait(next(pauses, PAUSES[-1])):
                raise Unanswerable("nobody waits for it any more")

    @contextmanager
    def _try(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        cut: Interrupt | None = None,
    ) -> Generator[Response]:
        if self._token is not None:
            headers = {"Authorization": f"Bearer {self._token}", **headers}
        with self._http.request(method, target, headers, body, cut) as response:
            yield response

    # -- sessions

    def _open(self, hello: Json, session: _Session | None) -> tuple[_Session | None, bytes]:
        """Initialize, in *session* if there is one; the session that it opens, and what it says.

        Raises:
            Lost: nobody answers.
        """
        target, headers = self._addressed(hello, session)
        try:
            with self._request("POST", target, headers, hello) as response:
                session_id = response.headers.get("mcp-session-id")
                answer = self._answer_in(response, hello["id"], EventReader(), self._write) or b"{}"
        except Gone as gone:
            raise Unanswerable(self._broke_off(str(gone))) from None
        result = json.loads(answer).get("result")
        if not isinstance(result, dict) or session_id is None:
            return None, answer
        return _Session(session_id, str(result.get("protocolVersion"))), answer

    def _another(self, lost: _Session | None) -> _Session:
        """A session in place of one that is gone, with what the client had said.

        Raises:
            Lost: there is none to be had.
        """
        with self._joining:
            if self._session is lost or self._session is None:
                hello = {**self._said["initialize"], "id": "emceepee/again"}
                self._session, _ = self._open(hello, None)
                if self._session is None:
                    raise Unanswerable(
                        "the daemon does not open another session; start this client anew"
                    )
                self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})
                if (level := self._said.get("logging/setLevel")) is not None:
                    self._say({**level, "id": "emceepee/level"})
                self._start(self._listen, self._session)
            return self._session

    def _say(self, message: Json, version: str | None = None) -> None:
        """What no answer is waited for."""
        if version is not None:  # a notification of a modern client need not say it itself
            params = dict(message.get("params") or {})
            meta = params.get("_meta") if isinstance(params.get("_meta"), dict) else {}
            message = {**message, "params": {**params, "_meta": {VERSION: version, **(meta or {})}}}
        try:
            self._post(message, self._session, EventReader(), write=_ignore)
        except (Gone, Unanswerable, _NoSession):
            pass  # whom it concerned is gone, too

    def _listen(self, session: _Session | None) -> None:
        """What the daemon says of its own accord, for as long as *session* is ours."""
        events = EventReader()
        while session is not None and self._session is session:
            headers = session.headers | {"Accept": SSE}
            if events.last_id is not None:
                headers["Last-Event-ID"] = events.last_id
            events.broke_off()
            try:
                with self._request("GET", self._endpoint, headers) as response:
                    if response.status == 404:
                        self._another(session)
                        return
                    if response.status != 200:
                        events = EventReader()
                    while response.status == 200 and (chunk := response.read_some()):
                        for data in events.feed(chunk):
                            self._write(data)
            except (Gone, Unanswerable):
                pass
            time.sleep(PAUSES[-1])

    def _keep_workspace(self, first: Json) -> None:
        """A workspace that nobody asks for anything is forgotten after a while, but for this."""
        meta = {key: first["params"]["_meta"].get(key, {}) for key in (VERSION, CAPABILITIES)}
        meta[CLIENT_INFO] = first["params"]["_meta"].get(CLIENT_INFO, {"name": "", "version": ""})
        listen = {
            "jsonrpc": "2.0",
            "id": "emceepee/keep",
            "method": "subscriptions/listen",
            "params": {"notifications": {}, "_meta": meta},
        }
        while True:
            self._say(listen)
            time.sleep(PAUSES[-1])

    def _fail(self, request_id: RequestId | None, code: int, why: str) -> None:
        self._write(_error(request_id, code, why))


def _ignore(line: bytes) -> None:
    pass


def _error(
    request_id: RequestId | None, code: int, why: str, may_have_run: bool | None = None
) -> bytes:
    error: Json = {"code": code, "message": why}
    if may_have_run is not None:
        error["data"] = {"may_have_run": may_have_run}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
