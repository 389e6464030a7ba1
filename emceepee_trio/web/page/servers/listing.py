"""What servers there are, for whom, and how each stands in each session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ....backend.backend import Backend
from ....config import Server
from ....config.entries import shown
from ....errors import ServerNotFound
from ....model.json.intake import Steps
from ....model.json.weight import cut
from ....model.text.redact import label
from ....session.servers.registry import is_edited
from ....session.session import Session
from ....tools.servers import describe, process_json
from ....waits.slices import in_slices
from ...costs.programs import programs_of
from ..common.pages import Data, Pages
from ..common.requests import visit
from ..now import BREATH, MAX_SHOWN, States
from ..waiting import REASON

MAX_SERVERS = 1000
"""In the list; the first are shown."""


@attrs.frozen
class Known:
    """A server, and whose it is: everybody's if it is configured, else of who has added it."""

    server: Server
    owner: str | None
    change: str | None = None
    """What was made of it here, if it is configured otherwise."""
    may_change: bool = True
    may_edit: bool = True


def add_to(pages: Pages) -> None:
    @pages.view("/servers", "servers.html")
    async def servers() -> Data:
        found = list(known(pages))
        states = await in_slices(_states(pages.manager.sessions(visit().visitor.whose)))
        listed = [
            {**_entry(each), **states.get(each.server.name, States()).to_json()}
            for each in found[:MAX_SERVERS]
        ]
        removed = [n for n, now in pages.manager.registry.changed().items() if now is None]
        return {
            "servers": listed,
            "servers_in_all": len(found),
            "removed": removed[:MAX_SERVERS],
            "may_restore": _may_change(pages),
            "configuration": pages.configured() if visit().visitor.whose is None else None,
        }

    @pages.view("/servers/<name>", "server.html")
    async def server(name: str) -> Data:
        one = find(pages, name)
        having = list(with_it(pages, name))
        said = []
        for session, backend in having[:MAX_SHOWN]:
            said.append(_in(pages, session, backend))
        taken = await programs_of(pages.manager, visit().visitor.whose, name)
        return {
            **_entry(one),
            "entry": shown(one.server) if one.may_edit else None,
            "may_change": one.may_change,
            "may_edit": one.may_edit,
            "programs": taken[:MAX_SHOWN],
            "sessions": said,
            "sessions_in_all": len(having),
        }


def known(pages: Pages) -> Iterator[Known]:
    """All that a visitor may see; of several that have one name, each."""
    registry, whose = pages.manager.registry, visit().visitor.whose
    written = {server.name: server for server in registry.config.servers}
    configured = registry.visible("")
    for name, server in configured.items():
        change = None if server == written[name] else _change(server, written[name])
        yield Known(server, None, change, _may_change(pages), may_edit=whose is None)
    for owner in registry.principals() if whose is None else [whose]:
        for name, server in registry.visible(owner).items():
            if name not in configured:
                yield Known(server, owner)


def _may_change(pages: Pages) -> bool:
    """Servers that are everybody's."""
    return visit().visitor.whose is None or pages.manager.config.policy.configured == "all"


def _change(server: Server, before: Server) -> str:
    if is_edited(server, before):
        return "edited"
    return "disabled" if server.disabled else "enabled"


def find(pages: Pages, name: str) -> Known:
    """
    Raises:
        ServerNotFound: there is none that the visitor may see.
    """
    for each in known(pages):
        if each.server.name == name:
            return each
    raise ServerNotFound(f"there is no server {name!r}; MCP of one is at /servers/NAME/mcp")


def with_it(pages: Pages, name: str) -> Iterator[tuple[Session, Backend]]:
    """Sessions that have a server of that name; those at work first."""
    sessions = pages.manager.sessions(visit().visitor.whose)
    for session in sorted(sessions, key=lambda session: not session.has_work):
        if (backend := session.backends.get(name)) is not None:
            yield session, backend


def _states(sessions: list[Session]) -> Steps[dict[str, States]]:
    found: dict[str, States] = {}
    for n, session in enumerate(sessions, 1):
        for name, backend in session.backends.items():
            if (states := found.get(name)) is None:
                states = found[name] = States()
            states.add(backend)
        if n % BREATH == 0:
            yield
    return found


def _entry(known: Known) -> dict[str, Any]:
    server = known.server
    return {
        "name": server.name,
        "owner": known.owner,
        "configured": known.owner is None,
        "changed": known.change,
        "description": server.description or "",
        "transport": server.transport,
        "target": server.target,
        "disabled": server.disabled,
    }


_OPTIONAL = ("starting", "next_retry_ms", "protocol_version", "server_info")


def _in(pages: Pages, session: Session, backend: Backend) -> dict[str, Any]:
    said = describe(session, backend)
    error = said.get("last_error")
    return {
        "session": pages.names.of(session.id),
        "label": label(session.id),
        "client": session.client_name,
        **said,
        "last_error": None if error is None else cut(error, REASON),
        **{key: said.get(key) for key in _OPTIONAL},
        "process": process_json(backend),
        "shared_with": list(backend.shared_with or ()),
    }
