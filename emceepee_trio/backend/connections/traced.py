"""What is told of one connection to who traces: requests and notifications, in either direction."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs

from ...tracing import Sending, TracedRequest, Tracing

NOBODY: AbstractContextManager[object] = nullcontext()
"""In place of `TracedConnection.asked`, where nobody traces."""


@attrs.define(eq=False)
class TracedConnection:
    tracing: Tracing
    server: str
    session: str
    """Whose requests these are; of a shared connection that is a hub."""
    url: str | None
    """Of a server that is no program."""
    version: str
    """Of the protocol, as far as that is agreed on."""

    def asking(
        self, method: str, params: Mapping[str, Any], request_id: object, call: str | None
    ) -> AbstractContextManager[Sending]:
        """Around a request of ours."""
        return self.tracing.asking(self._said(method, params, request_id), call)

    def asked(
        self, method: object, params: object, call: str | None
    ) -> AbstractContextManager[object]:
        """Around a request of the server; of neither anybody knows the shape."""
        if not isinstance(method, str):
            return NOBODY
        return self.tracing.asked(self._said(method, params), call, self.session)

    def saying(
        self, method: str, params: Mapping[str, Any] | None, call: str | None
    ) -> Mapping[str, Any] | None:
        """A notification of ours, with what it is to say of its trace."""
        return self.tracing.saying(self._said(method, params), call) or params

    def heard(self, method: str, params: Mapping[str, Any] | None) -> None:
        self.tracing.heard(self._said(method, params))

    def _said(self, method: str, params: object, request_id: object = None) -> TracedRequest:
        return TracedRequest(
            method,
            params if isinstance(params, Mapping) else {},
            request_id,
            self.version,
            "pipe" if self.url is None else "tcp",
            server=self.server,
            url=self.url,
        )
