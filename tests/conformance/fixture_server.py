"""A server that has what the protocol's conformance suite asks of one, in both eras.

``python fixture_server.py`` prints its URL and serves until SIGTERM: both eras at ``/mcp``, one
of them at ``/handshake/mcp`` and ``/modern/mcp``. With ``--stdio`` it serves stdin and stdout.

Each tool does in either era what its name says: what it asks of its client goes out as a request
in the one and as its result in the other.
"""

from __future__ import annotations

import json
import signal
import sys
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import mcp_types as types
import trio
from hypercorn.config import Config
from hypercorn.trio.run import worker_serve
from hypercorn.utils import wrap_app
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

Json = dict[str, Any]
Request = ServerRequestContext[Any, Any]
Tool = Callable[[Request], Awaitable[Json]]

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
    "gg=="
)
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
WATCHED = "test://watched-resource"
UNCHANGING = CacheHint(300_000, "public")

KINDS: dict[str, tuple[type[Any], type[BaseModel]]] = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
"""What a client can be asked: a request of the SDK, and its result."""


class NotYet(Exception):
    """The client has to answer first."""

    def __init__(self, result: Json) -> None:
        self.result = result


def is_modern(ctx: Request) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def arguments(ctx: Request) -> Json:
    return (ctx.params or {}).get("arguments") or {}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def image() -> Json:
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def embedded(uri: str, said: str, kind: str = "text/plain") -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": said}}


def content(*blocks: Json) -> Json:
    return {"content": list(blocks)}


# -- what it asks of its client ------------------------------------------------------------------


async def ask(ctx: Request, **questions: Json) -> dict[str, Json]:
    """What the client answers to each of the questions."""
    if not is_modern(ctx):
        answers: dict[str, Json] = {}

        async def put(key: str, question: Json) -> None:
            try:
                answers[key] = await _request(ctx, question)
            except MCPError:  # it cannot take that one
                answers[key] = {"action": "cancel"}

        async with trio.open_nursery() as nursery:
            for key, question in questions.items():
                nursery.start_soon(put, key, question)
        return answers
    params = ctx.params or {}
    # Rounds before this one are in the state, which the SDK seals.
    known = json.loads(params.get("requestState") or "{}") | (params.get("inputResponses") or {})
    if not questions.keys() <= known.keys():
        result = {"resultType": "input_required", "inputRequests": questions}
        raise NotYet({**result, "requestState": json.dumps(known)})
    return {key: known[key] for key in questions}


async def _request(ctx: Request, question: Json) -> Json:
    request, result = KINDS[question["method"]]
    answer = await ctx.session.send_request(
        request.model_validate(question),
        result,
        metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
    )
    return answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def form(message: str, required: tuple[str, ...] = (), **properties: Json) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def prompt_for_model(prompt: str) -> Json:
    message = {"role": "user", "content": text(prompt)}
    params = {"messages": [message], "maxTokens": 100}
    return {"method": "sampling/createMessage", "params": params}


STRING = {"type": "string"}
NUMBER = {"type": "number"}
WHO = form("What is your name?", ("name",), name=STRING)
SURE = form("Are you sure?", ("ok",), ok={"type": "boolean"})
MODEL = prompt_for_model("What is the capital of France?")
ROOTS: Json = {"method": "roots/list", "params": {}}

DEFAULTS = form(
    "Who are you?",
    name={**STRING, "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={**STRING, "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)

LEVELS = [{"const": "low", "title": "Low"}, {"const": "high", "title": "High"}]
ENUMS = form(
    "Which ones?",
    untitledSingle={**STRING, "enum": ["one", "two"]},
    titledSingle={**STRING, "oneOf": LEVELS},
    legacyEnum={**STRING, "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
    untitledMulti={"type": "array", "items": {**STRING, "enum": ["one", "two"]}},
    titledMulti={"type": "array", "items": {"anyOf": LEVELS}},
)


def asking(**questions: Json) -> Tool:
    """A tool that asks and tells what was answered."""

    async def tool(ctx: Request) -> Json:
        return content(text(json.dumps(await ask(ctx, **questions))))

    return tool


async def rounds(ctx: Request) -> Json:
    first = await ask(ctx, step1=form("Your name?", ("name",), name=STRING))
    second = await ask(ctx, step2=form("Your favourite colour?", ("color",), color=STRING))
    return content(text(json.dumps([first, second])))


async def confirmed(ctx: Request) -> Json:
    await ask(ctx, confirm=SURE)
    return content(text("state-ok"))


async def what_the_client_can(ctx: Request) -> Json:
    can = ctx.session.client_capabilities or types.ClientCapabilities()
    offered = {"name": (can.elicitation, WHO), "model": (can.sampling, MODEL)}
    answers = await ask(ctx, **{key: q for key, (has, q) in offered.items() if has is not None})
    return content(text(json.dumps(answers)))


async def sampling_needed(ctx: Request) -> Json:
    can = ctx.session.client_capabilities
    if can is None or can.sampling is None:
        needed: Json = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(-32021, "This needs a client that has sampling", needed)
    return content(text("It has sampling."))


async def sampled(ctx: Request) -> Json:
    answer = await ask(ctx, model=prompt_for_model(arguments(ctx)["prompt"]))
    return content(text(f"LLM response: {answer['model']['content']['text']}"))


async def elicited(ctx: Request) -> Json:
    wanted = form(arguments(ctx)["message"], username=STRING, email=STRING)
    answer = await ask(ctx, user=wanted)
    return content(text(f"User response: {json.dumps(answer['user'])}"))


# -- tools that take their time, so that whoever knows tasks makes one of them -------------------

LONG = 1.0
"""Seconds, longer than anybody waits who knows tasks."""


async def greets(ctx: Request) -> Json:
    return content(text(f"Hello, {arguments(ctx)['name']}!"))


async def computes(ctx: Request) -> Json:
    await trio.sleep(arguments(ctx)["seconds"])
    return content(text("computed"))


async def fails_late(ctx: Request) -> Json:
    await trio.sleep(LONG)
    return await fails(ctx)


async def breaks_late(ctx: Request) -> Json:
    await trio.sleep(LONG)
    raise MCPError(types.INTERNAL_ERROR, "It breaks, as it should")


async def asks_late(ctx: Request) -> Json:
    if not (ctx.params or {}).get("requestState"):
        await trio.sleep(LONG)
    answers = await ask(ctx, sure=form("Delete it?", ("confirm",), confirm={"type": "boolean"}))
    return content(text(json.dumps(answers)))


async def asks_two_late(ctx: Request) -> Json:
    if not (ctx.params or {}).get("requestState"):
        await trio.sleep(LONG)
    questions = {"first": WHO, "second": WHO}
    return content(text(json.dumps(await ask(ctx, **questions))))


async def asks_and_works(ctx: Request) -> Json:
    answer = await ask(ctx, user_name=WHO)
    await trio.sleep(LONG)
    return content(text(f"Hello, {answer['user_name']['content']['name']}!"))


# -- its other tools -----------------------------------------------------------------------------


def saying(*blocks: Json) -> Tool:
    async def tool(ctx: Request) -> Json:
        return content(*blocks)

    return tool


async def fails(ctx: Request) -> Json:
    return {**content(text("It fails, as it should")), "isError": True}


async def _log(ctx: Request, said: str) -> None:
    await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)


async def logs(ctx: Request) -> Json:
    for said in ("started", "working", "done"):
        await _log(ctx, said)
    return content(text("logged"))


async def progresses(ctx: Request) -> Json:
    for step in (0, 50, 100):
        await ctx.session.report_progress(step, 100, f"{step} of 100")
    return content(text("all of it"))


async def hangs_up(ctx: Request) -> Json:
    """Ends the stream of its answer, which the client finds when it comes again."""
    for said in ("before", "at once"):
        # The second is taken once the first is on its way, and with it the id to come again with.
        await _log(ctx, said)
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await _log(ctx, "after")
    return content(text("there again"))


async def mirrors(ctx: Request) -> Json:
    return content(text(f"region: {arguments(ctx).get('region')}"))


bus = InMemorySubscriptionBus()
shown: set[str] = set()
"""Tools and prompts that come and go."""


async def changes_tools(ctx: Request) -> Json:
    shown.symmetric_difference_update({"test_dynamic_tool"})
    await bus.publish(ToolsListChanged())
    await ctx.session.send_tool_list_changed()
    return content(text("changed"))


async def changes_prompts(ctx: Request) -> Json:
    shown.symmetric_difference_update({"test_dynamic_prompt"})
    await bus.publish(PromptsListChanged())
    await ctx.session.send_prompt_list_changed()
    return content(text("changed"))


async def changes_resource(ctx: Request) -> Json:
    await bus.publish(ResourceUpdated(uri=WATCHED))
    await ctx.session.send_resource_updated(WATCHED)
    return content(text("changed"))


def schema(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", **schema(street=STRING, city=STRING)},
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {**STRING, "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

NOTHING = schema()
MIXED = (text("one of each:"), image(), embedded("test://mixed", "{}", "application/json"))
TOOLS: dict[str, tuple[Json, Tool]] = {
    "test_simple_text": (NOTHING, saying(text("This is a simple text response for testing."))),
    "test_image_content": (NOTHING, saying(image())),
    "test_audio_content": (
        NOTHING,
        saying({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}),
    ),
    "test_embedded_resource": (NOTHING, saying(embedded("test://embedded", "It is embedded."))),
    "test_multiple_content_types": (NOTHING, saying(*MIXED)),
    "test_error_handling": (NOTHING, fails),
    "test_tool_with_logging": (NOTHING, logs),
    "test_logging_tool": (NOTHING, logs),
    "test_tool_with_progress": (NOTHING, progresses),
    "test_streaming_elicitation": (NOTHING, progresses),
    "test_reconnection": (NOTHING, hangs_up),
    "test_x_mcp_header": (schema(region={**STRING, "x-mcp-header": "Region"}), mirrors),
    "json_schema_2020_12_tool": (RICH, saying(text("It has a schema."))),
    "test_sampling": ({**schema(prompt=STRING), "required": ["prompt"]}, sampled),
    "test_elicitation": ({**schema(message=STRING), "required": ["message"]}, elicited),
    "test_elicitation_sep1034_defaults": (NOTHING, asking(user=DEFAULTS)),
    "test_elicitation_sep1330_enums": (NOTHING, asking(user=ENUMS)),
    "test_missing_capability": (NOTHING, sampling_needed),
    "test_input_required_result_elicitation": (NOTHING, asking(user_name=WHO)),
    "test_input_required_result_sampling": (NOTHING, asking(capital_question=MODEL)),
    "test_input_required_result_list_roots": (NOTHING, asking(client_roots=ROOTS)),
    "test_input_required_result_multiple_inputs": (
        NOTHING,
        asking(user_name=WHO, greeting=MODEL, client_roots=ROOTS),
    ),
    "test_input_required_result_multi_round": (NOTHING, rounds),
    "test_input_required_result_request_state": (NOTHING, confirmed),
    "test_input_required_result_tampered_state": (NOTHING, confirmed),
    "test_input_required_result_capabilities": (NOTHING, what_the_client_can),
    "test_trigger_tool_change": (NOTHING, changes_tools),
    "test_trigger_prompt_change": (NOTHING, changes_prompts),
    "test_trigger_resource_update": (NOTHING, changes_resource),
    "greet": ({**schema(name=STRING), "required": ["name"]}, greets),
    "slow_compute": ({**schema(seconds=NUMBER, label=STRING), "required": ["seconds"]}, computes),
    "failing_job": (NOTHING, fails_late),
    "protocol_error_job": (NOTHING, breaks_late),
    "confirm_delete": (schema(filename=STRING), asks_late),
    "multi_input": (NOTHING, asks_two_late),
    "test_tool_with_task": (NOTHING, asks_and_works),
    "test_dynamic_tool": (NOTHING, saying(text("It comes and goes."))),
}
"""By name: its input schema, and what it does."""


async def list_tools(ctx: Request, params: types.PaginatedRequestParams) -> Json:
    return {
        "tools": [
            {"name": name, "description": f"For the suite: {name}", "inputSchema": takes}
            for name, (takes, _) in TOOLS.items()
            if name != "test_dynamic_tool" or name in shown
        ]
    }


async def call_tool(ctx: Request, params: types.CallToolRequestParams) -> Json:
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await TOOLS[params.name][1](ctx)


# -- its resources and prompts -------------------------------------------------------------------

RESOURCES: dict[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This never changes."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    WATCHED: {"mimeType": "text/plain", "text": "This can be watched."},
}
TEMPLATE = ("test://template/", "{id}", "/data")


async def list_resources(ctx: Request, params: types.PaginatedRequestParams) -> Json:
    found = [
        {"uri": uri, "name": uri.removeprefix("test://"), "mimeType": has["mimeType"]}
        for uri, has in RESOURCES.items()
    ]
    return {"resources": found}


async def list_templates(ctx: Request, params: types.PaginatedRequestParams) -> Json:
    found = {"uriTemplate": "".join(TEMPLATE), "name": "template", "mimeType": "application/json"}
    return {"resourceTemplates": [found]}


async def read_resource(ctx: Request, params: types.ReadResourceRequestParams) -> Json:
    uri, (start, _, end) = params.uri, TEMPLATE
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if uri.startswith(start) and uri.endswith(end):
        said = json.dumps({"id": uri.removeprefix(start).removesuffix(end)})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": said}]}
    code = types.INVALID_PARAMS if is_modern(ctx) else -32002
    raise MCPError(code, "Resource not found", {"uri": uri})


async def simple(ctx: Request) -> list[Json]:
    return [text("This is a simple prompt for testing.")]


async def with_arguments(ctx: Request) -> list[Json]:
    return [text(json.dumps(arguments(ctx)))]


async def with_resource(ctx: Request) -> list[Json]:
    return [embedded(arguments(ctx)["resourceUri"], "It is embedded."), text("Look at it.")]


async def with_image(ctx: Request) -> list[Json]:
    return [image(), text("Look at it.")]


async def with_question(ctx: Request) -> list[Json]:
    wanted = form("In which context?", ("context",), context=STRING)
    return [text(json.dumps(await ask(ctx, user_context=wanted)))]


PROMPTS: dict[str, tuple[tuple[str, ...], Callable[[Request], Awaitable[list[Json]]]]] = {
    "test_simple_prompt": ((), simple),
    "test_prompt_with_arguments": (("arg1", "arg2"), with_arguments),
    "test_prompt_with_embedded_resource": (("resourceUri",), with_resource),
    "test_prompt_with_image": ((), with_image),
    "test_input_required_result_prompt": ((), with_question),
    "test_dynamic_prompt": ((), simple),
}
"""By name: its arguments, and what it is made of."""


async def list_prompts(ctx: Request, params: types.PaginatedRequestParams) -> Json:
    return {
        "prompts": [
            {
                "name": name,
                "description": f"For the suite: {name}",
                "arguments": [{"name": each, "required": True} for each in takes],
            }
            for name, (takes, _) in PROMPTS.items()
            if name != "test_dynamic_prompt" or name in shown
        ]
    }


async def get_prompt(ctx: Request, params: types.GetPromptRequestParams) -> Json:
    if params.name not in PROMPTS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    blocks = await PROMPTS[params.name][1](ctx)
    return {"messages": [{"role": "user", "content": block} for block in blocks]}


async def complete(ctx: Request, params: types.CompleteRequestParams) -> Json:
    values = [each for each in ("paris", "park", "party") if each.startswith(params.argument.value)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


async def accept(ctx: Request, params: BaseModel) -> Json:
    return {}


# -- how it is served ----------------------------------------------------------------------------


@attrs.define(eq=False)
class Events(EventStore):
    """All that went into streams, so that whoever lost one finds the rest of it."""

    _all: list[tuple[str, types.JSONRPCMessage | None]] = attrs.field(factory=list, init=False)

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        self._all.append((stream_id, message))
        return str(len(self._all))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self._all):
            return None
        last = int(last_event_id)
        stream, _ = self._all[last - 1]
        for number, (of, message) in enumerate(self._all[last:], last + 1):
            if of == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


HANDLERS: dict[str, tuple[type[BaseModel], Callable[[Request, Any], Awaitable[Json]]]] = {
    "tools/list": (types.PaginatedRequestParams, list_tools),
    "tools/call": (types.CallToolRequestParams, call_tool),
    "resources/list": (types.PaginatedRequestParams, list_resources),
    "resources/templates/list": (types.PaginatedRequestParams, list_templates),
    "resources/read": (types.ReadResourceRequestParams, read_resource),
    "resources/subscribe": (types.SubscribeRequestParams, accept),
    "resources/unsubscribe": (types.UnsubscribeRequestParams, accept),
    "prompts/list": (types.PaginatedRequestParams, list_prompts),
    "prompts/get": (types.GetPromptRequestParams, get_prompt),
    "completion/complete": (types.CompleteRequestParams, complete),
    "logging/setLevel": (types.SetLevelRequestParams, accept),
}


def made() -> Server[Any]:
    hints: Any = {method: UNCHANGING for method in HANDLERS if method in CACHEABLE_METHODS}
    server = Server[Any]("fixture", version="1", title="Fixture", cache_hints=hints)
    sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="fixture")
    server.middleware += [sealed, promises_changes]
    listen = ListenHandler(bus)
    server.add_request_handler(
        "subscriptions/listen", types.SubscriptionsListenRequestParams, listen
    )
    for method, (params, handler) in HANDLERS.items():
        server.add_request_handler(method, params, finished(handler))
    return server


async def promises_changes(ctx: Request, call_next: CallNext) -> HandlerResult:
    """Its lists change in the handshake era too, which the SDK does not say over HTTP."""
    result = await call_next(ctx)
    if ctx.method == "initialize" and isinstance(result, dict):
        for kind in ("tools", "prompts"):
            result["capabilities"][kind]["listChanged"] = True
    return result


def finished(handler: Callable[[Request, Any], Awaitable[Json]]) -> Any:
    """The same, and whether it is done, which results of the modern era say."""

    async def handle(ctx: Request, params: Any) -> Json:
        try:
            result = await handler(ctx, params)
        except NotYet as e:
            return e.result
        return {"resultType": "complete", **result} if is_modern(ctx) else result

    return handle


ERAS = {"/handshake/mcp": "handshake", "/modern/mcp": "modern"}


def by_era(app: Any) -> Any:
    """At the paths of one era, whoever speaks the other is told so, as servers of it do."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (era := ERAS.get(scope["path"])) is not None:
            version = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode()
            if (version in MODERN_PROTOCOL_VERSIONS) != (era == "modern"):
                await refuse(send, era, version)
                return
            scope = {**scope, "path": "/mcp", "raw_path": b"/mcp"}
        await app(scope, receive, send)

    return serve


async def refuse(send: Any, era: str, version: str) -> None:
    error: Json = {"code": -32000, "message": f"Unsupported protocol version: {version}"}
    if era == "modern":
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
        error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def over_http() -> None:
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.graceful_timeout = 0
    config.errorlog = None
    app = by_era(made().streamable_http_app(event_store=Events(), retry_interval=100))
    async with trio.open_nursery() as nursery:

        async def serve(*, task_status: trio.TaskStatus[list[str]]) -> None:  # noqa: ASYNC128 - hypercorn calls it
            wrapped = wrap_app(app, config.wsgi_max_body_size, "asgi")
            await worker_serve(
                wrapped, config, shutdown_trigger=trio.sleep_forever, task_status=task_status
            )

        (url,) = await nursery.start(serve)
        sys.stdout.write(f"{url}/mcp\n")
        sys.stdout.flush()
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                nursery.cancel_scope.cancel("told to stop")


async def over_stdio() -> None:
    server = made()
    options = server.create_initialization_options(NotificationOptions(True, True, True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    trio.run(over_stdio if "--stdio" in sys.argv else over_http)
