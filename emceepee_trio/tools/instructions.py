"""What a client is told as it connects: how our tools work together, and which servers there are.

A model may see nothing else before it decides whether to look at our tools at all, so the names of
the servers stand there with what they are good for. It is made from the configuration: nothing is
waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..config.bounds import MAX_OUR_INSTRUCTIONS
from ..model.json.weight import one_line
from ..session.session import Session

TOOLS = """\
emceepee connects you to any number of MCP servers through one fixed set of tools.
1. list_tools finds tools of all servers, by words too (query); execute_tool calls one. \
list_servers shows what is there, add_server connects another. Resources and prompts: \
list_resources, read_resource, list_prompts, get_prompt. A long list comes in pages: the same call \
with the cursor of one gets the next.
2. A slow call becomes a task. await_activity waits for everything at once: tasks that end, \
questions of servers, notifications, timers. Then get_task_result fetches the result.
3. Servers may ask while they work: pending_client_action in a response, or an event, says so. \
Answer with respond_to_elicitation (ask the user) or respond_to_sampling (you are the model).
4. An error says what to do next; get_server_status and get_logs tell why a server misbehaves.
"""


CORE = """\
emceepee connects you to any number of MCP servers through a few tools.
1. search finds tools, resources and prompts of all servers by words; execute_tool calls a tool. \
list_servers shows what is there.
2. A slow call becomes a task. await_activity waits for everything at once: tasks that end, \
questions of servers, notifications. Then get_task_result fetches the result.
3. Servers may ask while they work: pending_client_action in a response, or an event, says so. \
Answer with respond_to_elicitation (ask the user) or respond_to_sampling (you are the model).
4. An error says what to do next. Where it says list_tools, search will do.
"""

NATIVE = """\
emceepee connects you to any number of MCP servers. Tools of theirs are called SERVER__TOOL here.
1. Not all may be listed: list_tools finds the others, by words too (query), and execute_tool \
calls one. list_servers shows what is there, add_server connects another.
2. A slow call becomes a task. await_activity waits for everything at once: tasks that end, \
questions of servers, notifications. Then get_task_result fetches the result.
3. Servers may ask while they work: pending_client_action in a response, or an event, says so. \
Answer with respond_to_elicitation (ask the user) or respond_to_sampling (you are the model).
4. An error says what to do next; get_server_status tells why a server misbehaves.
"""

CODE = """\
emceepee connects you to any number of MCP servers by way of Python.
1. codemode_search finds tools, resources and prompts of all servers by words; with stubs=true \
as what a script may call.
2. codemode_execute runs a script of yours in a sandbox: await servers.NAME.TOOL(argument=value) \
or await call_tool(server, tool, args), asyncio.gather for many. Only the value of its last line, \
and what it logs, comes back: filter and join there. Of what is too long the beginning comes \
back, and another script reads the rest: await read_result(id, grep="…").
3. A script that takes long becomes a task. await_activity waits for everything at once; then \
get_task_result fetches what it has come to.
4. Servers may ask while they work: pending_client_action in a response, or an event, says so. \
Answer with respond_to_elicitation (ask the user) or respond_to_sampling (you are the model).
"""


def instructions(how: str, session: Session) -> str:
    """*how* the tools work together, and the servers of the session in their order. Bounded."""
    servers = [each.server for each in session.backends.values() if not each.server.disabled]
    if not servers:
        return f"{how}No server is configured."
    return how + _listed(
        [(server.name, server.description or "") for server in servers],
        MAX_OUR_INSTRUCTIONS - len(how.encode()),
    )


def _listed(servers: Sequence[tuple[str, str]], room: int) -> str:
    """Every name before any description, and all descriptions cut alike."""
    names = [name for name, _ in servers]
    best = _named(names, room)
    if best != _text(names):
        return best
    low, high = 1, room
    while low <= high:
        length = (low + high) // 2
        shown = [
            f"{name} ({purpose})" if (purpose := one_line(said, length)) else name
            for name, said in servers
        ]
        text = _text(shown)
        if len(text.encode()) <= room:
            best, low = text, length + 1
        else:
            high = length - 1
    return best


def _text(shown: Sequence[str]) -> str:
    return f"Servers: {'; '.join(shown)}."


def _named(names: Sequence[str], room: int) -> str:
    """As many as there is room for; a name is ASCII."""
    text = _text(names[:room])
    if len(names) <= room and len(text) <= room:
        return text
    more = "; and {} more, see list_servers."
    shown, size = 0, len("Servers: ") + len(more.format(len(names)))
    for name in names:
        size += len(name) + 2
        if size > room:
            break
        shown += 1
    return f"Servers: {'; '.join(names[:shown])}{more.format(len(names) - shown)}"
