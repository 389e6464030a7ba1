"""Prompts of backends, and completion of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import attrs

from ..backend.backend import Backend
from ..config.server import A_NAME, A_URL
from ..errors import NotFound
from ..model.json.fields import frozen
from ..model.json.problems import Problem
from .common.asking import ask
from .common.registry import READS, Request, tool
from .common.response import Reply, json_reply
from .resources import OfServers, gathered_of
from .results.shown import shown_json, whole


@tool("Prompts of one server or of all.", OfServers, READS, waits=True)
async def list_prompts(request: Request, asked: OfServers) -> Reply:
    gathered = await gathered_of(request, "prompts", asked)
    return await gathered.reply(request, "prompts", asked)


@frozen
class GetPrompt:
    server: Annotated[str, A_NAME]
    name: Annotated[str, A_NAME]
    arguments: Mapping[str, str] = attrs.field(factory=dict)


@tool("Render a prompt.", GetPrompt, READS, waits=True)
async def get_prompt(request: Request, asked: GetPrompt) -> Reply:
    backend = request.session.backend(asked.server)
    check_prompt_shown(backend, asked.name)
    params = {"name": asked.name, "arguments": asked.arguments}
    result = await ask(request, backend, "prompts/get", params, leaves_long=True)
    if (preview := await shown_json(request, asked.server, result)) is not None:
        return Reply({**preview, "isError": False}, of=asked.server)
    return attrs.evolve(json_reply(await whole(result)), of=asked.server)


def check_prompt_shown(backend: Backend, prompt: str) -> None:
    """Raises `NotFound` of a prompt that is as if missing."""
    if backend.catalog.hides_prompt(prompt):
        raise NotFound(
            f"server {backend.server.name!r} has no prompt {prompt!r}; list_prompts shows what it "
            "has"
        )


@frozen
class Reference:
    prompt: Annotated[str | None, A_NAME] = None
    uri: Annotated[str | None, A_URL] = None

    @staticmethod
    def meant(given: Mapping[str, Any]) -> dict[str, Any]:
        """As the protocol has it, too: ``{type, name}`` is a prompt, ``{type, uri}`` a template."""
        ours = {key: value for key, value in given.items() if key != "type"}
        if "name" in ours and not ours.keys() & {"prompt", "uri"}:
            ours["prompt"] = ours.pop("name")
        return ours

    def problems(self) -> Iterator[Problem]:
        if (self.prompt is None) == (self.uri is None):
            yield Problem("", 'expected either {"prompt": name} or {"uri": template}')


@frozen
class Argument:
    name: Annotated[str, A_NAME]
    value: str


@frozen
class Complete:
    server: Annotated[str, A_NAME]
    ref: Reference
    argument: Argument
    context: Mapping[str, str] = attrs.field(factory=dict)


@tool(
    "Suggest values for an argument of a prompt or resource template.", Complete, READS, waits=True
)
async def complete(request: Request, asked: Complete) -> Reply:
    backend = request.session.backend(asked.server)
    if asked.ref.prompt is not None:
        check_prompt_shown(backend, asked.ref.prompt)
    ref = (
        {"type": "ref/prompt", "name": asked.ref.prompt}
        if asked.ref.prompt is not None
        else {"type": "ref/resource", "uri": asked.ref.uri}
    )
    params: dict[str, Any] = {"ref": ref, "argument": attrs.asdict(asked.argument)}
    if asked.context:
        params["context"] = {"arguments": asked.context}
    result = await ask(request, backend, "completion/complete", params)
    found = result.get("completion")
    found = found if isinstance(found, dict) else {}
    said: dict[str, Any] = {"values": found.get("values", [])}
    said |= {ours: found[its] for ours, its in _OPTIONAL.items() if its in found}
    return json_reply(said)


_OPTIONAL = {"total": "total", "has_more": "hasMore"}


TOOLS = (list_prompts, get_prompt, complete)
