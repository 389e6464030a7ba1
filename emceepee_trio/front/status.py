"""What is under way, for people who run a daemon: every session with its servers, tasks, questions.

Ids of sessions are shown as in the logs, arguments of tools not at all.
"""

from __future__ import annotations

from typing import Any

from ..model.redact import label
from ..session.manager import SessionManager
from ..session.session import Session
from ..tools.servers import describe


def status_of(manager: SessionManager, principal: str | None) -> dict[str, Any]:
    """The sessions of one principal, or of all."""
    return {"sessions": [_session(session) for session in manager.sessions(principal)]}


def _session(session: Session) -> dict[str, Any]:
    asked = session.questions
    questions = [*asked.open("elicitation"), *asked.open("sampling")]
    return {
        "session": label(session.id),
        "principal": session.principal,
        "client": session.client_name,
        "servers": [describe(session, backend) for backend in session.backends.values()],
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
