"""The server that ``--demo`` adds: one of everything a backend can do, in both protocol eras.

Owns its tools, its stdin and stdout, and the little that outlives a call. Knows nothing of the
proxy: ``python -m emceepee_trio.demo_backend`` serves any MCP client until stdin ends or SIGTERM.
"""

import base64
import os
import secrets
import signal
import sys
import warnings
from typing import Annotated, Any, get_args

import attrs
import mcp_types as types
import trio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, Field, WithJsonSchema

COUNTER = "demo://counter"
LEVELS = get_args(types.LoggingLevel)
STYLES = ["brief", "formal", "playful"]
FILES = {
    "haiku.txt": "One line to them all\nservers come and servers go\nthe session goes on\n",
    "notes.md": "# Notes\n\nNothing is lost, much is counted.\n",
    "readme.txt": "The files of the demo backend. They exist only in its memory.\n",
}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
    "gg=="
)

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]
READ_ONLY = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
ACTS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
DESTROYS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)


@attrs.define(eq=False)
class State:
    """What outlives a call. One process serves one client."""

    counter: int = 0
    log_level: types.LoggingLevel = "debug"
    subscribed: set[str] = attrs.Factory(set)


state = State()
server = MCPServer(
    "demo",
    version="1",
    title="Demo backend",
    log_level="WARNING",
    instructions="A backend to try things with. `echo` and `add` answer at once; `slow` takes its"
    " time and reports progress; `ask_name`, `ask_url` and `ask_model` put a question to the"
    f" client first; `bump` changes the resource {COUNTER}; `crash` ends the process.",
)


def say(line: str) -> None:
    sys.stderr.write(f"demo: {line}\n")
    sys.stderr.flush()


@server.tool(annotations=READ_ONLY, structured_output=False)
async def echo(text: Annotated[str, Field(description="What to give back")]) -> str:
    """Give the text back, unchanged."""
    return text


class Sum(BaseModel):
    sum: Number = Field(description="a + b")


@server.tool(annotations=READ_ONLY)
async def add(a: Number, b: Number) -> Sum:
    """Add two numbers. The result is structured: {"sum": n}."""
    return Sum(sum=a + b)


@server.tool(annotations=READ_ONLY, structured_output=False)
async def slow(
    ctx: Context,
    seconds: Annotated[float, Field(ge=0, le=3600, description="How long it takes")] = 3,
    steps: Annotated[int, Field(ge=1, le=1000, description="How often it reports progress")] = 5,
) -> str:
    """Work for a while with a progress notification after every step. Stops when cancelled."""
    say(f"slow started: {seconds:g} s in {steps} steps")
    try:
        for step in range(1, steps + 1):
            await trio.sleep(seconds / steps)
            await ctx.report_progress(step, steps, f"step {step} of {steps}")
    except trio.Cancelled:
        say("slow was cancelled")
        raise
    return f"done after {seconds:g} s in {steps} steps"


class Name(BaseModel):
    name: str = Field(title="Name", description="Whom to greet")
    excited: bool = Field(False, title="Greet with enthusiasm")


async def name_wanted(question: str) -> Elicit[Name]:
    return Elicit(question, Name)


@server.tool(annotations=ACTS, structured_output=False)
async def ask_name(
    answer: Annotated[ElicitationResult[Name], Resolve(name_wanted)],
    question: Annotated[str, Field(description="What to ask")] = "What is your name?",
) -> str:
    """Ask the user for a name with a form (elicitation), then greet them."""
    if not isinstance(answer, AcceptedElicitation):
        return "You declined." if answer.action == "decline" else "You cancelled."
    return f"Hello, {answer.data.name}{'!' if answer.data.excited else ''}"


@server.tool(annotations=ACTS, structured_output=False)
async def ask_url(ctx: Context) -> str | types.InputRequiredResult:
    """Ask the user to open a web page (elicitation in url mode), then tell what they chose."""
    offered = ctx.client_capabilities and ctx.client_capabilities.elicitation
    if not offered or offered.url is None:
        raise ToolError("this client does not offer url elicitation")
    message, url = "Please look at this page.", "https://example.com/demo"
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        elicitation_id = secrets.token_hex(8)
        action = (await ctx.elicit_url(message, url, elicitation_id)).action
        if action == "accept":
            await ctx.session.send_elicit_complete(elicitation_id)
        return f"The answer was: {action}"
    # Modern: the question leaves as the result, and the client calls again to answer it.
    answer = (ctx.input_responses or {}).get("page")
    if ctx.request_state == "asked" and isinstance(answer, types.ElicitResult):
        return f"The answer was: {answer.action}"
    question = types.ElicitRequest(params=types.ElicitRequestURLParams(message=message, url=url))
    return types.InputRequiredResult(input_requests={"page": question}, request_state="asked")


async def model_wanted(prompt: str) -> Sample:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return Sample([message], max_tokens=200)


@server.tool(annotations=ACTS, structured_output=False)
async def ask_model(
    prompt: Annotated[str, Field(description="What to ask the client's model")],
    answer: Annotated[types.CreateMessageResult, Resolve(model_wanted)],
) -> str:
    """Have the client's model answer a prompt (sampling) and return its text."""
    content = answer.content
    return content.text if isinstance(content, types.TextContent) else f"({content.type})"


async def roots_wanted() -> ListRoots:
    return ListRoots()


@server.tool(annotations=READ_ONLY, structured_output=False)
async def list_roots(answer: Annotated[types.ListRootsResult, Resolve(roots_wanted)]) -> str:
    """List the roots that the client declares, one URI a line."""
    return "\n".join(str(root.uri) for root in answer.roots) or "no roots"


@server.tool(annotations=ACTS, structured_output=False)
async def log(ctx: Context, message: str, level: types.LoggingLevel = "info") -> str:
    """Send a log message to the client, unless it wants only worse ones."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS  # the SDK knows what it opted in to
    if modern or LEVELS.index(level) >= LEVELS.index(state.log_level):
        await ctx.log(level, message, logger_name="demo")
    return f"logged at {level}"


# Of each pair below the SDK drops the half that the client's era does not know.


async def counter_updated(ctx: Context) -> None:
    await ctx.notify_resource_updated(COUNTER)
    await ctx.session.send_resource_updated(COUNTER)


@server.tool(annotations=ACTS, structured_output=False)
async def notify(ctx: Context) -> str:
    """Announce that tools, resources and prompts changed, and that demo://counter was updated."""
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    await ctx.notify_resources_changed()
    await ctx.session.send_resource_list_changed()
    await ctx.notify_prompts_changed()
    await ctx.session.send_prompt_list_changed()
    await counter_updated(ctx)
    return "announced"


@server.tool(annotations=ACTS, structured_output=False)
async def bump(ctx: Context) -> str:
    """Add one to the resource demo://counter and tell its subscribers. Returns the new value."""
    state.counter += 1
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or COUNTER in state.subscribed:
        await counter_updated(ctx)
    return str(state.counter)


@server.tool(annotations=READ_ONLY)
async def fail(message: str = "this tool always fails") -> types.CallToolResult:
    """Fail with the message, as a tool does whose work went wrong (isError)."""
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


@server.tool(annotations=DESTROYS, structured_output=False)
async def crash(exit_code: Annotated[int, Field(ge=0, le=255)] = 3) -> str:
    """End the backend's process at once, in the middle of the call."""
    say(f"crashing with exit code {exit_code}")
    os._exit(exit_code)


@server.resource("demo://greeting", mime_type="text/plain")
async def greeting() -> str:
    """A text that never changes."""
    return "Hello from the demo backend.\n"


@server.resource("demo://pixel", mime_type="image/png")
async def pixel() -> bytes:
    """A picture of one pixel."""
    return PIXEL


@server.resource(COUNTER, mime_type="text/plain")
async def counter() -> str:
    """A number that `bump` changes. Can be subscribed to."""
    return str(state.counter)


@server.resource("demo://files/{name}", mime_type="text/plain")
async def files(name: str) -> str:
    """The files of the demo, by name."""
    if name not in FILES:
        raise ResourceNotFoundError(f"there is no file {name!r}; there are {', '.join(FILES)}")
    return FILES[name]


@server.prompt()
async def summarize(topic: str, style: str = STYLES[0]) -> str:
    """Ask for a summary of a topic, in a style: brief, formal or playful."""
    return f"Summarize {topic} in a {style} style."


# What MCPServer has no decorators for, and what exists in the handshake era only.

Request = ServerRequestContext[Any]


async def complete(ctx: Request, params: types.CompleteRequestParams) -> types.CompleteResult:
    of_prompt = isinstance(params.ref, types.PromptReference)
    known = {(True, "style"): STYLES, (False, "name"): list(FILES)}
    choices = known.get((of_prompt, params.argument.name), [])
    values = [choice for choice in choices if choice.startswith(params.argument.value)]
    return types.CompleteResult(
        completion=types.Completion(values=values, total=len(values), has_more=False)
    )


async def subscribe(ctx: Request, params: types.SubscribeRequestParams) -> types.EmptyResult:
    state.subscribed.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(ctx: Request, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    state.subscribed.discard(str(params.uri))
    return types.EmptyResult()


async def set_level(ctx: Request, params: types.SetLevelRequestParams) -> types.EmptyResult:
    state.log_level = params.level
    return types.EmptyResult()


async def main() -> None:
    # The SDK's own `run` neither takes these handlers nor says that lists change.
    core = server._lowlevel_server
    core.add_request_handler("completion/complete", types.CompleteRequestParams, complete)
    core.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    core.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
    core.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    options = core.create_initialization_options(NotificationOptions(True, True, True))
    async with stdio_server() as (read, write):
        await core.run(read, write, options)


def run() -> None:
    # At once and without unwinding: the SDK's reader thread would wait for stdin to end, every
    # answer written is flushed already, and nothing else here could be lost.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    trio.run(main)


if __name__ == "__main__":
    run()
