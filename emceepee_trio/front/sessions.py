"""Opening a session for somebody who came over HTTP: at the bound, an idle one makes room."""

from __future__ import annotations

from ..errors import LimitReached
from ..serving.asgi import Refused
from ..session.manager import SessionFailed, SessionManager
from ..session.session import Session


async def open_session(
    manager: SessionManager, session_id: str, principal: str, *, on_demand: bool = False
) -> Session:
    try:
        return await manager.ensure(session_id, principal, ends_when_idle=True, on_demand=on_demand)
    except LimitReached as error:
        raise Refused(503, error.message) from None
    except SessionFailed as error:
        raise Refused(503, str(error)) from None
