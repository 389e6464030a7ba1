"""Servers: adding, removing, looking at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import attrs

from ..backend.backend import Backend
from ..backend.catalogue.catalog import name_of
from ..backend.children.footprint import footprints
from ..config import ConfigError, Server, server_from_arguments
from ..config.bounds import (
    MAX_CAPABILITIES,
    MAX_INSTRUCTIONS,
    MAX_LIST_BYTES,
    MAX_NAME,
    MAX_PURPOSE,
    MAX_SAID,
    MAX_TASKS_SHOWN,
    MAX_TOOLS_NAMED,
)
from ..config.reading.dialects import ALIASES
from ..config.server import A_NAME, A_PATH, A_URL, ARGS, FEW, HEADERS
from ..config.treatment import ALLOWED
from ..errors import ToolError
from ..model.json.fields import Doc, Secret, frozen
from ..model.json.lenient import lenient
from ..model.json.weight import cut, one_line, weigh
from ..model.states import BackendState
from ..model.wire import timestamp
from ..session.calls.call import Task
from ..session.session import Session
from .common.asking import entries_of
from .common.deliveries import ASKED, pending_of
from .common.listing import Group, listed
from .common.registry import CALLS, ENDS, READS, STRANGERS, Request, tool
from .common.response import Reply, json_reply

STDERR_TAIL = 20
RECENT_EVENTS = 20
NAMED = 5
"""Clients of other sessions that have the same connection; there may be hundreds."""


@frozen
class AddServer:
    name: Annotated[str, A_NAME]
    url: Annotated[str | None, A_URL, Doc("streamable HTTP endpoint")] = None
    headers: Annotated[Mapping[str, str] | None, HEADERS, Secret()] = None
    command: Annotated[str | None, A_PATH, Doc("or: a program that speaks MCP on stdio")] = None
    args: Annotated[tuple[str, ...] | None, ARGS] = None
    env: Annotated[Mapping[str, str] | None, ARGS, Secret()] = None
    cwd: Annotated[str | None, A_PATH] = None
    restart: Annotated[
        Mapping[str, Any] | None,
        FEW,
        Doc("{enabled, max_attempts, base_delay_ms, max_delay_ms}"),
    ] = None
    reconnect: Annotated[Mapping[str, Any] | None, FEW, Doc("the same for a url")] = None
    allowed_tools: Annotated[tuple[str, ...] | None, ALLOWED, Doc("names or globs")] = None
    denied_tools: Annotated[tuple[str, ...] | None, ALLOWED] = None
    description: Annotated[str | None, A_PATH, Doc("what it is good for")] = None
    connect_timeout_ms: Annotated[int | None, Doc("default 30000")] = None
    keep_on_failure: Annotated[bool, Doc("keep trying")] = False


@tool(
    "Connect an MCP server, by url or by command, as in {name: 'git', command: 'uvx', args: "
    "['mcp-server-git']}.",
    AddServer,
    CALLS,
    waits=True,
)
async def add_server(request: Request, asked: AddServer) -> Reply:
    given = attrs.asdict(asked, recurse=False)
    keep = given.pop("keep_on_failure")
    said_of_it = {key: value for key, value in given.items() if value is not None}
    entry, strangers = lenient(said_of_it, Server, aliases=ALIASES)
    assert isinstance(entry, dict)
    try:
        server = server_from_arguments(entry)
    except ConfigError as error:
        problems = [*request.ignored, *strangers][:STRANGERS] + error.problems
        raise add_server.refused(problems) from None
    request.ignored += strangers
    client, replaced = await request.manager.servers.add(
        request.session, server, keep_on_failure=keep
    )
    backend = request.session.backend(server.name)
    said: dict[str, Any] = {
        "server": server.name,
        "status": backend.state.value,
        "replaced": replaced,
        "capabilities": {},
        "tools": [],
    }
    if client is not None:
        said["capabilities"] = client.negotiated.capabilities
        try:
            tools = await entries_of(request, backend, "tools")
        except ToolError as error:
            # It is added and stays: an error would say that it is not.
            said["errors"] = [{"server": server.name, "error": error.message}]
        else:
            said["tools"] = names = [name_of(tool)[:MAX_NAME] for tool in tools[:MAX_TOOLS_NAMED]]
            if len(tools) > len(names):
                said["more"] = len(tools) - len(names)
        if client.negotiated.instructions:
            said["instructions"] = cut(client.negotiated.instructions, MAX_INSTRUCTIONS)
    return json_reply(said)


@frozen
class Named:
    name: Annotated[str, A_NAME]


@tool("Disconnect a server and forget it.", Named, ENDS)
async def remove_server(request: Request, asked: Named) -> Reply:
    request.session.backend(asked.name)
    await request.manager.servers.remove(request.session, asked.name)
    return json_reply({"removed": asked.name})


@tool(
    "Make a new connection to a server now; restarts a program. Use it when one is broken.",
    Named,
    CALLS,
    waits=True,
)
async def reconnect_server(request: Request, asked: Named) -> Reply:
    backend = request.session.backend(asked.name)
    await backend.reconnect(request.session.client_name)
    return json_reply({"server": asked.name, "status": backend.state.value})


@frozen
class ListServers:
    detail: Annotated[
        Literal["summary", "full"], Doc("full adds targets, health and capabilities")
    ] = "summary"
    cursor: Annotated[str | None, A_NAME] = None


@tool("All servers: what they are for, and their state.", ListServers, READS)
async def list_servers(request: Request, asked: ListServers) -> Reply:
    session = request.session
    show = describe if asked.detail == "full" else summarize
    for backend in session.backends.values():
        _look_at(session, backend)
    shown = partial(show, session)
    groups = [Group(name, map(shown, (each,))) for name, each in session.backends.items()]
    reply, _ = await listed(request, "servers", groups, asked)
    return reply


@frozen
class OfServer:
    server: Annotated[str, A_NAME]


@tool(
    "One server in detail: instructions, recent events, stderr, what calls in flight wait for.",
    OfServer,
    READS,
)
async def get_server_status(request: Request, asked: OfServer) -> Reply:
    session, name = request.session, asked.server
    backend = session.backend(name)
    said: dict[str, Any] = {"server": describe(session, backend, whole=True)}
    _look_at(session, backend)
    if backend.agreed is not None and backend.agreed.instructions:
        said["instructions"] = cut(backend.agreed.instructions, MAX_INSTRUCTIONS)
    questions = {kind: session.questions.open(kind, name) for kind in ("elicitation", "sampling")}
    waiting = next((kind for kind, open_ in questions.items() if open_), None)
    said |= {
        **task_items([t for t in session.calls.tasks() if t.server == name], "tasks"),
        "elicitations": [],
        "sampling_requests": [],
        "calls_in_flight": [
            # A backend that has asked us something usually waits for that.
            call.to_json() | ({"waiting_on": waiting} if waiting and call.is_sent else {})
            for call in session.calls.under_way(name)
        ],
        "recent_events": session.events.recent(name, RECENT_EVENTS),
    }
    for event in said["recent_events"]:
        if event["type"] in ASKED:
            event["data"].pop("params", None)  # what is open stands beside it
    pending, full = pending_of(session, name)
    said |= pending
    if (process := process_json(backend)) is not None:
        said["process"] = process
    if backend.process is not None:
        for footprint in (await footprints([backend.process.pid])).values():
            said["process"] |= footprint.to_json()
    said["told"] = session.ledger.of(name).to_json()
    said["stderr_tail"] = session.buffers.tail(name, "stderr", STDERR_TAIL)
    return attrs.evolve(json_reply(said), full=full)


def _look_at(session: Session, backend: Backend) -> None:
    if backend.state is BackendState.CONNECTING:
        session.planned.look_at(backend.server.name)
    else:
        session.events.forget_wakes(backend.server.name)


def task_items(tasks: Sequence[Task], key: str) -> dict[str, Any]:
    """Tasks of one server as await_activity shows them, the newest if they are many."""
    shown = [
        {"taskId": task.task_id, "toolName": task.tool, "status": task.status.value}
        for task in tasks[-MAX_TASKS_SHOWN:]
    ]
    more = len(tasks) - len(shown)
    return {key: shown, "more": more} if more else {key: shown}


def process_json(backend: Backend) -> dict[str, Any] | None:
    """The child of a stdio server: the one that runs, or how the last one ended."""
    process = backend.process
    if process is not None:
        return {"pid": process.pid, "started_at": timestamp(process.started_at)}
    if backend.last_process is None:
        return None
    pid, started_at, end = backend.last_process
    said = {"pid": pid, "started_at": timestamp(started_at)}
    said |= {"exit_code": end.code, "signal": end.signal}
    return {key: value for key, value in said.items() if value is not None}


def summarize(session: Session, backend: Backend) -> dict[str, Any]:
    """A server as list_servers shows it: what it is for, whether it works, what is open."""
    whole = describe(session, backend)
    said: dict[str, Any] = {"name": whole["name"]}
    if purpose := _purpose(backend):
        said["description"] = purpose
    said["status"] = whole["status"]
    if backend.state is not BackendState.CONNECTED:
        told = ("starting", "last_error", "next_retry_ms")
        said |= {key: whole[key] for key in told if key in whole}
    shown = ("shared_with", "shared_with_more", "working_tasks", "pending_requests")
    return said | {key: whole[key] for key in shown if whole.get(key)}


def _purpose(backend: Backend) -> str:
    """What it is good for, in a sentence or two: as configured, or as it says itself."""
    said: Any = backend.server.description
    if said is None and backend.agreed is not None:
        info = backend.agreed.server_info
        said = info.get("description") or info.get("title")
    return one_line(said, MAX_PURPOSE) if isinstance(said, str) else ""


def describe(session: Session, backend: Backend, *, whole: bool = False) -> dict[str, Any]:
    """A server with all that is known of it, or, if *whole*, with all that it says of itself."""
    server = backend.server
    said: dict[str, Any] = {
        "name": server.name,
        **({"description": server.description} if server.description else {}),
        "transport": server.transport,
        "target": server.target,
        "status": backend.state.value,
        "health": backend.health.to_json(),
        "has_instructions": False,
        "working_tasks": len(session.calls.working(server.name)),
        "pending_requests": len(session.questions.open("elicitation", server.name))
        + len(session.questions.open("sampling", server.name)),
    }
    if (others := backend.shared_with) is not None:
        said["shared_with"] = sorted(one_line(each, MAX_NAME) for each in others)[:NAMED]
        if len(others) > NAMED:
            said["shared_with_more"] = len(others) - NAMED
    if backend.connected_at is not None:
        said["connected_at"] = timestamp(backend.connected_at)
    if backend.state is BackendState.IDLE and backend.idle_since is not None:
        said["idle_since"] = timestamp(backend.idle_since)
    if (starting := backend.starting_still) is not None:
        said["starting"] = starting
    if backend.last_error is not None:
        said["last_error"] = cut(backend.last_error, MAX_SAID)
    if backend.next_try is not None:
        said["reconnect_attempt"] = backend.retries.attempt
        said["next_retry_ms"] = backend.next_try_ms
    if (agreed := backend.agreed) is not None:
        said |= {
            "protocol_version": agreed.protocol_version,
            "server_info": agreed.server_info,
            "capabilities": agreed.capabilities,
            "has_instructions": bool(agreed.instructions),
        }
        room = MAX_LIST_BYTES if whole else MAX_CAPABILITIES
        if weigh((agreed.server_info, agreed.capabilities)) > room:
            del said["server_info"], said["capabilities"]
            said["too_large"] = True
    return said


TOOLS = (add_server, remove_server, reconnect_server, list_servers, get_server_status)
