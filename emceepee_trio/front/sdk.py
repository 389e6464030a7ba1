"""What we use of the SDK's server beyond what it promises, each with its reason.

``tests/test_foundations.py`` asserts it. The counterpart of ``backend/connections/sdk.py``.
"""

from __future__ import annotations

from typing import Any

from mcp.server.context import ServerRequestContext

from .log_messages import Notify


def raw_notify(context: ServerRequestContext[Any, Any]) -> Notify:
    """Sends a notification of the session as it is, at any time, also after this request.

    The public way takes models, which would sieve what backends log.
    """
    notify: Notify = context.session._connection.notify
    return notify
