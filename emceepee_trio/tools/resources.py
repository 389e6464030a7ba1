"""Resources of backends, and our own: the diagrams."""

from __future__ import annotations

from typing import Annotated, Any

from ..backend.backend import Backend
from ..backend.catalogue.catalog import Entries, List
from ..config import OUR_NAME
from ..config.server import A_NAME, A_URL
from ..errors import ExecutionFailed, NotFound
from ..model.diagrams import diagrams
from ..model.json.fields import frozen
from ..model.wire import dumps
from .common.asking import Gathered, Labelled, ask, gather, list_of
from .common.following import check_shown, subscribe, unsubscribe
from .common.registry import ACTS, READS, Request, tool
from .common.response import Reply, json_reply
from .results.preview import RESULT
from .results.reading import part_of
from .results.shown import shown

DIAGRAMS = "emceepee://diagrams"
OUR_RESOURCES: Entries = [
    {
        "uri": DIAGRAMS,
        "name": "diagrams",
        "description": "State diagrams of tasks, questions and calls, in mermaid",
        "mimeType": "application/json",
    }
]


def read_ours(uri: str) -> dict[str, Any]:
    """The contents of a resource of ours, as resources/read gives them."""
    if uri != DIAGRAMS:
        raise NotFound(f"no resource {uri!r}; there is {DIAGRAMS}, and results by their links")
    said = dumps({"diagrams": diagrams()})
    return {"contents": [{"uri": uri, "mimeType": "application/json", "text": said}]}


@frozen
class OfServers:
    server: Annotated[str | None, A_NAME] = None
    fresh: bool = False
    """Ask again, also those whose lists are remembered."""
    cursor: Annotated[str | None, A_NAME] = None


async def gathered_of(request: Request, name: List, asked: OfServers) -> Gathered:
    """A list over all servers, or of one that is named exactly."""
    session, server = request.session, asked.server
    gathered = Gathered()
    if server is None:
        gathered = await gather(request, name, session.backends.values(), fresh=asked.fresh)
    elif server != OUR_NAME:
        backend = session.backend(server)
        gathered.lists.append(await list_of(request, backend, name, fresh=asked.fresh))
    if name == "resources" and server in (None, OUR_NAME):
        gathered.lists.append(Labelled(OUR_NAME, OUR_RESOURCES))
    return gathered


@tool("Resources of one server or of all.", OfServers, READS, waits=True)
async def list_resources(request: Request, asked: OfServers) -> Reply:
    gathered = await gathered_of(request, "resources", asked)
    return await gathered.reply(request, "resources", asked)


@tool("Templates for resource URIs of one server or of all.", OfServers, READS, waits=True)
async def list_resource_templates(request: Request, asked: OfServers) -> Reply:
    gathered = await gathered_of(request, "resource_templates", asked)
    return await gathered.reply(request, "resource_templates", asked)


@frozen
class Resource:
    server: Annotated[str, A_NAME]
    uri: Annotated[str, A_URL]


@tool("Read a resource.", Resource, READS, waits=True)
async def read_resource(request: Request, asked: Resource) -> Reply:
    if asked.server == OUR_NAME:
        if asked.uri.startswith(RESULT):
            return await part_of(request.session, asked.uri)
        result = read_ours(asked.uri)
    else:
        backend = request.session.backend(asked.server)
        check_shown(backend, asked.uri)
        params = {"uri": asked.uri}
        result = await ask(request, backend, "resources/read", params, leaves_long=True)
    contents = result.get("contents")
    blocks = [
        {"type": "resource", "resource": item}
        for item in (contents if isinstance(contents, list) else [])
    ]
    reply = type(result)(content=blocks, isError=False)
    if "_meta" in result:
        reply["_meta"] = result["_meta"]
    return Reply(await shown(request, asked.server, reply), of=asked.server)


@tool(
    "Be told when a resource changes, as a notification event.",
    Resource,
    ACTS,
    waits=True,
)
async def subscribe_resource(request: Request, asked: Resource) -> Reply:
    backend = _foreign(request, asked.server)
    await subscribe(request, backend, asked.uri)
    return json_reply({"subscribed": asked.uri})


@tool("Undo subscribe_resource.", Resource, ACTS, waits=True)
async def unsubscribe_resource(request: Request, asked: Resource) -> Reply:
    backend = _foreign(request, asked.server)
    if asked.uri not in backend.preferences.subscriptions:
        raise NotFound(f"{asked.uri!r} of server {asked.server!r} is not subscribed")
    await unsubscribe(request, backend, asked.uri)
    return json_reply({"unsubscribed": asked.uri})


def _foreign(request: Request, server: str) -> Backend:
    if server == OUR_NAME:
        raise ExecutionFailed(f"resources of {OUR_NAME!r} never change")
    return request.session.backend(server)


TOOLS = (
    list_resources,
    list_resource_templates,
    read_resource,
    subscribe_resource,
    unsubscribe_resource,
)
