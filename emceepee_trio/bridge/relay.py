"""One client of the bridge: what it asks is put to the daemon, and what comes is written to it.

Each request of the client is a POST in a thread of its own, whose answers are written as they come.
What is between it and the daemon ends with the client.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from .conversation import ClientRequest, Conversation, Json, RequestId, Write, in_thread
from .daemon import PATIENCE, FarDaemon, Unanswerable
from .http import Address
from .modern import version_of

BEGINS = 1.0
"""Seconds for a request to get to the daemon before it is cancelled there."""
AT_ONCE = 256
"""Requests under way, as many as a session may have; with more, the client's input waits."""

PARSE_ERROR, INVALID_REQUEST, INTERNAL, LOST = -32700, -32600, -32603, -32000


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
        self._daemon = FarDaemon(address, find_token)
        self._conversation = Conversation(self._daemon, write, view, server)
        self._write = write
        self._asked: dict[RequestId, ClientRequest] = {}
        self._writing = 0
        """Answers that are on their way to the client."""
        self._changed = self._daemon.changed
        """Of the requests under way, of those, of what is over, and of whether one is away."""
        self._over: str | None = None
        """Why nothing is answered any more."""

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
                self._conversation.say(message)
                if message.get("method") == "notifications/initialized":
                    self._conversation.initialized()

    def _take_request(self, request_id: RequestId, message: Json) -> None:
        asked = ClientRequest(message)
        with self._changed:
            if request_id in self._asked:
                self._fail(request_id, INVALID_REQUEST, "a request of that id is under way")
                return
            self._changed.wait_for(
                lambda: self._daemon.ended.is_set() or len(self._asked) < AT_ONCE
            )
            if self._over is not None:
                self._write(_error(request_id, LOST, self._over, may_have_run=False))
                return
            self._asked[request_id] = asked
        if version_of(message) is not None:
            self._conversation.keep_workspace(message)
        if message["method"] == "initialize":  # all else waits for what it opens
            self._ask(request_id, asked)
        else:
            in_thread(self._ask, request_id, asked)

    def _take_cancelled(self, notice: Json) -> None:
        params = notice.get("params")
        request_id = params.get("requestId") if isinstance(params, dict) else None
        asked = self._asked.get(request_id) if isinstance(request_id, str | int) else None
        if asked is not None and not asked.is_cancelled:
            asked.is_cancelled = True
            in_thread(self._cancel, asked, notice)

    def _cancel(self, asked: ClientRequest, notice: Json) -> None:
        # On another connection it could be faster than what it cancels; but a daemon may be silent
        # for as long as that takes.
        asked.begun.wait(BEGINS)
        self._conversation.say(notice, version_of(asked.message))
        # In the modern era closing is the cancellation; in the other nothing comes any more.
        asked.cut.set()

    def wait_taken(self, is_taken: Callable[[], bool]) -> None:
        """Until all that the client has said is under way, unless nobody is there to take it."""
        with self._changed:
            self._changed.wait_for(lambda: is_taken() or self._daemon.is_away, PATIENCE)

    def has_taken(self) -> None:
        """Tell who waits for that."""
        with self._changed:
            self._changed.notify_all()

    def wait_answered(self, patience: float) -> bool:
        """Until nothing is under way that can be answered, or that time is over; whether it was."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._writing and (not self._asked or self._daemon.is_away), patience
            )

    def give_up(self) -> None:
        """Answer what is under way, and what may come: there will be no other answer."""
        with self._changed:
            self._over = "standard input has ended, so emceepee stdio ends"
            if self._daemon.is_away:
                self._over += f"; no daemon answers at {self._daemon.address}"
            left, self._asked = self._asked, {}
            self._daemon.ended.set()
            self._changed.notify_all()
        for request_id, asked in left.items():
            asked.cut.set()
            if not asked.is_cancelled:
                may_have_run = asked.begun.is_set()
                self._write(_error(request_id, LOST, self._over, may_have_run))

    def end(self) -> None:
        """The client is gone: so shall be what the daemon keeps for it."""
        self._conversation.end()

    def _ask(self, request_id: RequestId, asked: ClientRequest) -> None:
        try:
            answer = self._conversation.answer_to(asked)
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

    def _fail(self, request_id: RequestId | None, code: int, why: str) -> None:
        self._write(_error(request_id, code, why))


def _error(
    request_id: RequestId | None, code: int, why: str, may_have_run: bool | None = None
) -> bytes:
    error: Json = {"code": code, "message": why}
    if may_have_run is not None:
        error["data"] = {"may_have_run": may_have_run}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
