"""What is under way, for people who run a daemon: every session with its servers, tasks, questions,
and the servers that a session has from the configuration.

Ids of sessions are shown as in the logs, arguments of tools not at all.
"""

from __future__ import annotations

from typing import Any

from ..config import Lacking, Server
from ..model.json.intake import Steps
from ..model.text.redact import label
from ..session.manager import SessionManager
from ..session.session import Session
from ..tools.servers import describe


def status_of(manager: SessionManager, principal: str | None) -> Steps[dict[str, Any]]:
    """The sessions of one principal, or of all."""
    sessions = []
    for session in manager.sessions(principal):
        sessions.append(_session(session))
        yield
    servers = [_configured(server) for server in manager.config.servers]
    return {"servers": servers, "sessions": sessions}


def _configured(server: Server) -> dict[str, Any]:
    said: dict[str, Any] = {
        "name": server.name,
        "transport": server.transport,
        "target": server.target,
        "disabled": server.disabled,
    }
    return said | ({"last_error": server.lacks} if isinstance(server, Lacking) else {})


def _session(session: Session) -> dict[str, Any]:
    asked = session.questions
    questions = [*asked.open("elicitation"), *asked.open("sampling")]
    return {
        "session": label(session.id),
        "principal": session.principal,
        "client": session.client_name,
        "servers": [
            describe(session, backend) | {"told": session.ledger.of(name).to_json()}
            for name, backend in session.backends.items()
        ],
        "told": session.ledger.total.to_json(),
        "tasks": [
            {
                "task_id": task.task_id,
                "server": task.server,
                "tool": task.tool,
                "status": task.status.value,
                "created_at": task.created_at,
            }
            for task in session.calls.tasks()
        ],
        "questions": [
            {
                "request_id": question.id,
                "server": question.server,
                "kind": question.kind,
                "timestamp": question.timestamp,
            }
            for question in questions
        ],
    }
