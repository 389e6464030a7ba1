"""What is between one client and the daemon: its session there, and what is said in it.

A client of the handshake era has a session that the daemon names, and a stream for what the daemon
says of its own accord; one of the modern era has a workspace that is named here, and that a
subscription of ours keeps for as long as we are there.

A stream that broke off is resumed, which works while the daemon lives; else the client is told that
its request may have run. A session that is gone is opened again, with what the client had said at
first.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from .daemon import PAUSES, FarDaemon, Unanswerable
from .events import EventReader
from .http import CHUNK, Gone, Interrupt, Response
from .modern import CAPABILITIES, CLIENT_INFO, VERSION, modern_headers, version_of

Json: TypeAlias = dict[str, Any]
RequestId: TypeAlias = str | int
Write: TypeAlias = Callable[[bytes], None]

MCP = "/mcp"
JSON, SSE = "application/json", "text/event-stream"
RESUMING = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each try to resume an answer's stream."""
LONGEST = 256 * 1024 * 1024
"""Bytes of an answer."""


class _NoSession(Exception):
    """The daemon does not know our session any more, and has run nothing."""


class ClientRequest:
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


class Conversation:
    """Of one client."""

    def __init__(
        self, daemon: FarDaemon, write: Write, view: str | None = None, server: str | None = None
    ) -> None:
        self._daemon = daemon
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

    def initialized(self) -> None:
        """The client has said so: it hears what the daemon says of its own accord."""
        in_thread(self._listen, self._session)

    def keep_workspace(self, message: Json) -> None:
        """From the first request of the modern era on."""
        if not self._is_modern:
            self._is_modern = True
            in_thread(self._keep_listening, message)

    def end(self) -> None:
        """The client is gone: so shall be what the daemon keeps for it."""
        kept = [] if self._session is None else [(self._endpoint, self._session.headers)]
        if self._is_modern:
            kept.append((self._workspace, {}))
        for target, headers in kept:
            try:
                with self._daemon.once("DELETE", target, headers) as response:
                    response.read(CHUNK)
            except Gone:
                pass  # and with it our session

    def answer_to(self, asked: ClientRequest) -> bytes | None:
        """What the client is told; None if it has cancelled the request.

        Raises:
            Unanswerable: there will be no answer.
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
        asked: ClientRequest | None = None,
        write: Write | None = None,
    ) -> bytes | None:
        """Say *message*; its answer, unless the stream that it comes on ends before.

        Raises:
            Gone: it broke off, and may have been run.
            Unanswerable: nobody is there, or it will not have us.
        """
        target, headers = self._addressed(message, session)
        cut = None if asked is None else asked.cut
        with self._daemon.request("POST", target, headers, message, cut) as response:
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
                f"what answers at {self._daemon.address} is no emceepee daemon "
                f"(status {response.status})"
            )
        if said.get("id") is None:  # refused before anybody looked at it
            return json.dumps({**said, "id": request_id}).encode()
        return body

    def _resumed(
        self, session: _Session, events: EventReader, asked: ClientRequest
    ) -> bytes | None:
        """The rest of a stream that broke off; None if it breaks off again.

        Raises:
            Unanswerable: nobody knows that stream any more.
        """
        assert events.last_id is not None
        events.broke_off()
        headers = session.headers | {"Accept": SSE, "Last-Event-ID": events.last_id}
        try:
            with self._daemon.request("GET", self._endpoint, headers, None, asked.cut) as response:
                if response.status == 200:
                    return self._answer_in(response, None, events, self._write)
        except Gone:
            return None
        except Unanswerable as lost:
            raise Unanswerable(str(lost), may_have_run=True) from None
        raise Unanswerable(self._broke_off("it was started anew"), may_have_run=True)

    def _broke_off(self, why: str) -> str:
        return (
            f"the daemon at {self._daemon.address} broke off before it answered ({why}); the "
            "outcome is unknown, it may have run"
        )

    def _open(self, hello: Json, session: _Session | None) -> tuple[_Session | None, bytes]:
        """Initialize, in *session* if there is one; the session that it opens, and what it says.

        Raises:
            Unanswerable: nobody answers.
        """
        target, headers = self._addressed(hello, session)
        try:
            with self._daemon.request("POST", target, headers, hello) as response:
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
            Unanswerable: there is none to be had.
        """
        with self._joining:
            if self._session is lost or self._session is None:
                hello = {**self._said["initialize"], "id": "emceepee/again"}
                self._session, _ = self._open(hello, None)
                if self._session is None:
                    raise Unanswerable(
                        "the daemon does not open another session; start this client anew"
                    )
                self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
                if (level := self._said.get("logging/setLevel")) is not None:
                    self.say({**level, "id": "emceepee/level"})
                in_thread(self._listen, self._session)
            return self._session

    def say(self, message: Json, version: str | None = None) -> None:
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
                with self._daemon.request("GET", self._endpoint, headers) as response:
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

    def _keep_listening(self, first: Json) -> None:
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
            self.say(listen)
            time.sleep(PAUSES[-1])


def in_thread(run: Callable[..., None], *args: object) -> None:
    threading.Thread(target=run, args=args, daemon=True).start()


def _ignore(line: bytes) -> None:
    pass
