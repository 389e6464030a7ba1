"""Requests of one connection that were shown to it and are not answered, and who cancels them.

A transport shows each incoming message before anybody else has it. The SDK's dispatcher, where
there is one, applies a cancellation before its reason could be read, and a client that has merely
stopped waiting shall find its result later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs
import trio
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import RequestId

from .. import logs
from ..errors import LimitReached
from ..session.manager import SessionManager
from ..session.session import Session
from ..tools.common.registry import Request

_GAVE_UP = re.compile(r"timed? ?out", re.IGNORECASE)
"""In the reason of a cancellation: the client has stopped waiting, not changed its mind."""


@attrs.define(eq=False)
class InFlight:
    """A request as the transport showed it, until it is answered."""

    request: Request
    cancelled: bool = False
    scope: trio.CancelScope | None = None
    """In which it is answered, where no dispatcher of the SDK has one for it."""


@attrs.define(eq=False)
class UnderWay:
    """Those of one connection."""

    _session: Session
    _manager: SessionManager
    _may_resend: bool
    _requests: dict[RequestId, InFlight] = attrs.field(factory=dict, init=False)
    """By their ids, in which "1" is 1."""

    def begin(self, request_id: RequestId) -> InFlight:
        """A request is shown."""
        request = Request(self._session, self._manager, may_resend=self._may_resend)
        entry = self._requests[coerce_request_id(request_id)] = InFlight(request)
        return entry

    def find(self, request_id: RequestId) -> InFlight:
        """The one that was shown under that id."""
        return self._requests[coerce_request_id(request_id)]

    def find_or_begin(self, request_id: RequestId) -> InFlight:
        """The same; a transport that shows nothing (one in memory) has nothing to explain."""
        return self._requests.get(coerce_request_id(request_id)) or self.begin(request_id)

    def answered(self, request_id: RequestId, entry: InFlight) -> None:
        """That request is answered; by now another one may have its id."""
        key = coerce_request_id(request_id)
        if self._requests.get(key) is entry:
            del self._requests[key]

    def forget(self, request_id: RequestId) -> None:
        """It is cancelled, perhaps before anybody has begun to answer it."""
        self._requests.pop(coerce_request_id(request_id), None)

    def answered_in(self, scope: trio.CancelScope, request_id: RequestId) -> None:
        """A request that was shown is cancelled with that scope, once its client does that."""
        entry = self.find(request_id)
        entry.scope = scope
        if entry.cancelled:  # by a message right behind it
            scope.cancel("not wanted any more")

    # What a client does not want any more.

    def cancelled(self, params: Mapping[str, Any]) -> None:
        """Its client has said so, by a notification with these *params*."""
        request_id, reason = params.get("requestId"), params.get("reason")
        if isinstance(request_id, str | int):
            self._cancel(coerce_request_id(request_id), reason if isinstance(reason, str) else "")

    def give_up(self) -> None:
        """The client has lost all its answers, and stays: what can go on without it does."""
        for key in tuple(self._requests):
            self._cancel(key, "timed out")

    def client_is_gone(self) -> None:
        """Nothing of what is under way will be read."""
        for entry in self._requests.values():
            entry.request.is_cut_off = not entry.cancelled  # who has cancelled it does not come
            entry.cancelled = True

    def _cancel(self, key: RequestId, reason: str) -> None:
        entry = self._requests.get(key)
        if entry is None:
            return
        entry.cancelled = True
        if entry.scope is not None:
            entry.scope.cancel("not wanted any more")
        if _GAVE_UP.search(reason):
            try:
                entry.request.give_up()
            except LimitReached as error:
                logs.write(
                    "warn", "promotion_refused", session=self._session.id, error=error.message
                )
