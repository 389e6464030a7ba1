"""A backend without the SDK: JSON lines on stdin and stdout, odd but legal, or lying on request.

Flags choose the faults of the whole server (``--help`` lists them), tool names those of a call.
Stdlib only. One thread reads, every tool call has a thread of its own, a lock orders the writes.
With ``--journal FILE`` each received message is appended to FILE as a JSON line; so are
``{"started": pid}``, ``{"marker": text, "id": call}``, ``{"unparsed": line}``, ``{"eof": true}``.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]

MODERN = "2026-07-28"
ENVELOPE = "io.modelcontextprotocol/"
METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED_VERSION = -32601, -32602, -32022
RESOURCE_NOT_FOUND = -32002  # until 2025-11-25, then INVALID_PARAMS

flags = argparse.Namespace()
writing = threading.Lock()
ids = itertools.count(1)
answers: dict[str, tuple[threading.Event, Json]] = {}  # our questions, by their string ids
calls: dict[str | int, threading.Event] = {}  # tool calls under way; set: cancelled
listeners: dict[str | int, Json] = {}  # modern subscriptions/listen requests, with their filters


class Refused(Exception):
    """A JSON-RPC error: code, message, data."""


class InputRequired(Exception):
    """Modern era: the questions leave as the result of the call."""


def journal(entry: object) -> None:
    if flags.journal is not None:
        with flags.journal.open("ab", buffering=0) as file:  # one write: never half a line
            file.write(json.dumps(entry).encode() + b"\n")


def write(data: bytes) -> None:
    with writing:
        while data:
            data = data[os.write(1, data) :]


def send(message: object) -> None:
    write(json.dumps(message, ensure_ascii=False).encode() + b"\n")


def notify(method: str, params: Json | None = None) -> None:
    send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))


def text(*texts: str) -> Json:
    return {"content": [{"type": "text", "text": text} for text in texts]}


class Call:
    """One tool call: what it was given, and its ways to talk meanwhile."""

    def __init__(self, request: Json) -> None:
        self.id = request["id"]
        self.params: Json = request.get("params", {})
        self.arguments: Json = self.params.get("arguments") or {}
        self.meta: Json = self.params.get("_meta") or {}
        self.modern = is_modern(request)
        self.cancelled = calls[self.id] = threading.Event()

    def get(self, name: str, default: Any) -> Any:
        return self.arguments.get(name, default)

    def marker(self, marker: str) -> None:
        journal({"marker": marker, "id": self.id})

    def response(self, result: object) -> Json:
        if self.modern and isinstance(result, dict):
            result = {"resultType": "complete", **result}
        return {"jsonrpc": "2.0", "id": self.id, "result": result}

    def ask(self, *questions: tuple[str, Json | None]) -> list[Json]:
        """Put questions to the client, all at once, and wait for all answers.

        An answer is the client's result, or ``{"error": …}``.
        """
        if not self.modern:
            return self.wait([self.question(*question) for question in questions])
        given = self.params.get("inputResponses") or {}
        if not given:
            requests = {
                f"q{n}": {"method": method} | ({} if params is None else {"params": params})
                for n, (method, params) in enumerate(questions)
            }
            raise InputRequired(requests, f"state of {self.params['name']}")
        if self.params.get("requestState") != f"state of {self.params['name']}":
            raise Refused(INVALID_PARAMS, "requestState is not what it was", None)
        return [given[f"q{n}"] for n, _ in enumerate(questions)]

    def question(self, method: str, params: Json | None = None) -> str:
        question = f"{method}-{next(ids)}"
        answers[question] = threading.Event(), {}
        request = {"jsonrpc": "2.0", "id": question, "method": method}
        send(request | ({} if params is None else {"params": params}))
        return question

    def wait(self, questions: list[str]) -> list[Json]:
        found = []
        for question in questions:
            arrived, answer = answers[question]
            arrived.wait()
            del answers[question]
            found.append({"error": answer["error"]} if "error" in answer else answer["result"])
        return found


# -- tools: the result, or None if there is nothing (more) to answer -----------------------------

TOOLS: dict[str, Callable[[Call], object]] = {}


def tool(run: Callable[[Call], object]) -> Callable[[Call], object]:
    TOOLS[run.__name__.rstrip("_")] = run
    return run


NAME_FORM = {
    "mode": "form",
    "message": "name?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
    "x-vendor": "form",
}
LONG_FORM = json.loads("""
{"message":"Please provide inputs for the following fields:","requestedSchema":{"type":"object",
"properties":{"name":{"title":"String","type":"string","description":"Your full, legal name"},
"check":{"title":"Boolean","type":"boolean","description":"Agree to the terms and conditions"},
"firstLine":{"title":"String with default","type":"string",
"description":"Favorite first line of a story","default":"It was a dark and stormy night."},
"email":{"title":"String with email format","type":"string","format":"email",
"description":"Your email address (will be verified, and never shared with anyone else)"},
"homepage":{"type":"string","format":"uri","title":"String with uri format",
"description":"Portfolio / personal website"},"birthdate":{"title":"String with date format",
"type":"string","format":"date","description":"Your date of birth"},"integer":{
"title":"Integer","type":"integer",
"description":
"Your favorite integer (do not give us your phone number, pin, or other sensitive info)",
"minimum":1,"maximum":100,"default":42},"number":{"title":"Number in range 1-1000",
"type":"number","description":"Favorite number (there are no wrong answers)","minimum":0,
"maximum":1000,"default":3.14},"untitledSingleSelectEnum":{"type":"string",
"title":"Untitled Single Select Enum","description":"Choose your favorite friend","enum":[
"Monica","Rachel","Joey","Chandler","Ross","Phoebe"],"default":"Monica"},
"untitledMultipleSelectEnum":{"type":"array","title":"Untitled Multiple Select Enum",
"description":"Choose your favorite instruments","minItems":1,"maxItems":3,"items":{
"type":"string","enum":["Guitar","Piano","Violin","Drums","Bass"]},"default":["Guitar"]},
"titledSingleSelectEnum":{"type":"string","title":"Titled Single Select Enum",
"description":"Choose your favorite hero","oneOf":[{"const":"hero-1","title":"Superman"},{
"const":"hero-2","title":"Green Lantern"},{"const":"hero-3","title":"Wonder Woman"}],
"default":"hero-1"},"titledMultipleSelectEnum":{"type":"array",
"title":"Titled Multiple Select Enum","description":"Choose your favorite types of fish",
"minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"fish-1","title":"Tuna"},{"const":"fish-2",
"title":"Salmon"},{"const":"fish-3","title":"Trout"}]},"default":["fish-1"]},
"legacyTitledEnum":{"type":"string","title":"Legacy Titled Single Select Enum",
"description":"Choose your favorite type of pet","enum":["pet-1","pet-2","pet-3","pet-4",
"pet-5"],"enumNames":["Cats","Dogs","Birds","Fish","Reptiles"],"default":"pet-1"}},"required":["name"]}}
""")
"""That of trigger-elicitation-request, of @modelcontextprotocol/server-everything 2026.8.31."""
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "capital of France?"}}],
    "maxTokens": 10,
}


@tool
def echo(call: Call) -> object:
    """The text, and vendor fields wherever one can be."""
    block = {"type": "text", "text": call.get("text", ""), "x-vendor": {"block": 1}}
    return {
        "content": [block],
        "_meta": {"vendor/trace": "t-1"},
        "x-vendor": "top",
        "x-arguments": call.arguments,
    }


@tool
def unknown_content(call: Call) -> object:
    return {"content": [{"type": "video", "data": "AAAA", "mimeType": "video/mp4", "x-vendor": 1}]}


@tool
def structured_only(call: Call) -> object:
    return {"structuredContent": {"answer": 42, "nested": {"list": [1, None, 2.5]}}}


@tool
def structured(call: Call) -> object:
    """Its ``value`` as structured content, whatever that is, and a text; after a notification."""
    notify("notifications/custom")
    said = text("in words") | {"structuredContent": call.arguments["value"]}
    return said | {"isError": call.get("is_error", False)}


@tool
def schema_mismatch(call: Call) -> object:
    """Its outputSchema promises an integer."""
    return text("not what was promised") | {"structuredContent": {"n": "not an integer"}}


@tool
def big(call: Call) -> object:
    return text("x" * call.get("size", 5_000_000))


@tool
def unicode(call: Call) -> object:
    """Also what some line splitters take for the end of a line, and a NUL."""
    return text("grüße 你好 🦑 \u2028\u2029\u0085 \x00 \ud7ff \U0010ffff e\u0301")


@tool
def split(call: Call) -> object:
    """One line in many writes, cut also inside characters."""
    line = json.dumps(call.response(text(call.get("text", "grüße 🦑"))), ensure_ascii=False)
    data, pieces = line.encode() + b"\n", call.get("pieces", 40)
    size = max(1, len(data) // pieces)
    with writing:
        for start in range(0, len(data), size):
            os.write(1, data[start : start + size])
            time.sleep(0.001)  # so that the reader wakes in between
    return None


@tool
def string_id_question(call: Call) -> object:
    """Asks for a name with a form; the answer as JSON text."""
    return text(json.dumps(call.ask(("elicitation/create", NAME_FORM))[0]))


@tool
def needs_page(call: Call) -> object:
    """Wants a page to be opened first (-32042); says so again until the ``file`` exists."""
    if Path(call.arguments["file"]).exists():
        return text("it was opened")
    page = {"mode": "url", "elicitationId": "e1", "url": "https://x.test/p", "message": "open it"}
    raise Refused(-32042, "a page is to be opened first", {"elicitations": [page]})


@tool
def page_is_done(call: Call) -> object:
    """Tells that what was to be done on the page of ``needs_page`` is done."""
    notify("notifications/elicitation/complete", {"elicitationId": "e1"})
    return text("told")


@tool
def question_then_wait(call: Call) -> object:
    """Asks for a name, then waits for the ``file``, or for its cancellation; says the answer."""
    answer = call.ask(("elicitation/create", NAME_FORM))[0]
    call.marker("answered")
    while not call.cancelled.wait(0.01):
        if Path(call.arguments["file"]).exists():
            return text(json.dumps(answer))
    return None


@tool
def trigger_elicitation_request(call: Call) -> object:
    """Asks with a form as there are; the answer as JSON text."""
    return text(json.dumps(call.ask(("elicitation/create", LONG_FORM))[0]))


@tool
def ask(call: Call) -> object:
    """Asks with these ``params``; the answer as JSON text."""
    return text(json.dumps(call.ask(("elicitation/create", call.arguments["params"]))[0]))


@tool
def large_question(call: Call) -> object:
    """Asks for a name with a message of ``size`` characters; the answer as JSON text."""
    asked = {**NAME_FORM, "message": "?" * call.arguments["size"]}
    return text(json.dumps(call.ask(("elicitation/create", asked))[0]))


@tool
def strict_question(call: Call) -> object:
    """Asks for a name, and fails without one in words that do not say why."""
    answer = call.ask(("elicitation/create", NAME_FORM))[0]
    if answer.get("action") != "accept":
        raise Refused(INVALID_PARAMS, "Invalid or expired requestState", None)
    return text(answer["content"]["name"])


@tool
def sample_question(call: Call) -> object:
    return text(json.dumps(call.ask(("sampling/createMessage", SAMPLE))[0]))


@tool
def two_questions(call: Call) -> object:
    """A form and a sampling request at once; both answers as JSON texts, in this order."""
    found = call.ask(("elicitation/create", NAME_FORM), ("sampling/createMessage", SAMPLE))
    return text(*map(json.dumps, found))


@tool
def withdraw_question(call: Call) -> object:
    """Asks, withdraws the question (once the file exists, if one is given), then answers."""
    question = call.question("elicitation/create", NAME_FORM)
    while "file" in call.arguments and not Path(call.arguments["file"]).exists():
        time.sleep(0.01)
    notify("notifications/cancelled", {"requestId": question, "reason": "no longer needed"})
    return text("withdrawn")


@tool
def roots(call: Call) -> object:
    return text(json.dumps(call.ask(("roots/list", None))[0]))


@tool
def ping_client(call: Call) -> object:
    if call.modern:
        return text("a modern server asks nothing") | {"isError": True}
    return text(json.dumps(call.ask(("ping", None))[0]))


@tool
def slow(call: Call) -> object:
    """Waits for the ``file`` to exist, or for its cancellation, which is not answered."""
    call.marker("slow started")
    while not call.cancelled.wait(0.01):
        if "file" in call.arguments and Path(call.arguments["file"]).exists():
            call.marker("slow finished")
            return text("the file is there")
    call.marker("slow cancelled")
    return None


@tool
def never(call: Call) -> object:
    call.marker("never started")
    return None


@tool
def progress(call: Call) -> object:
    token, n = call.meta.get("progressToken"), call.get("n", 3)
    for step in range(1, n + 1) if token is not None else ():
        params = {"progressToken": token, "progress": step, "total": n, "message": f"step {step}"}
        notify("notifications/progress", params)
    return text(f"progressed {n if token is not None else 0} times")


@tool
def notify_many(call: Call) -> object:
    """``n`` notifications of a vendor, then each list_changed ``k`` times, then an update."""
    for n in range(call.get("n", 1)):
        notify("notifications/vendor/thing", {"n": n, "x-vendor": {"deep": [n]}})
    for _ in range(call.get("k", 1)):
        for kind in "tools", "resources", "prompts":
            changed(call, f"notifications/{kind}/list_changed", f"{kind}ListChanged", {})
    for _ in range(call.get("updates", 0)):
        uri = call.get("uri", "raw://text")
        changed(call, "notifications/resources/updated", "resourceSubscriptions", {"uri": uri})
    return text("notified")


def changed(call: Call, method: str, wanted: str, params: Json) -> None:
    if not call.modern:
        notify(method, params or None)
    for subscription, filters in list(listeners.items()) if call.modern else ():
        want = filters.get(wanted)
        if want is True or (isinstance(want, list) and params.get("uri") in want):
            meta = {ENVELOPE + "subscriptionId": subscription}
            notify(method, params | {"_meta": meta})


@tool
def log_many(call: Call) -> object:
    """``n`` log messages of one ``level``; modern: only if the call opted in."""
    level, wanted = call.get("level", "info"), not call.modern or ENVELOPE + "logLevel" in call.meta
    for n in range(call.get("n", 3)) if wanted else ():
        params = {"level": level, "logger": "raw", "data": {"n": n}, "x-vendor": n}
        notify("notifications/message", params)
    return text("logged")


@tool
def rpc_error(call: Call) -> object:
    """An error with a code, a message and data."""
    data = call.get("data", {"why": ["because"]})
    raise Refused(call.get("code", -32099), call.get("message", "no such luck"), data)


@tool
def bad_result(call: Call) -> object:
    return []


@tool
def garbage(call: Call) -> object:
    write(b'this is not JSON\n{"broken": \n\n\xff\xfe\x00\n"a string"\n12\n{"neither": "nor"}\n')
    return text("after the garbage")


@tool
def stderr(call: Call) -> object:
    for n in range(call.get("n", 3)):
        sys.stderr.write(f"{call.get('line', 'stderr line')} {n}\n")
    sys.stderr.flush()
    return text("written")


@tool
def exit_(call: Call) -> object:
    sys.stderr.write("leaving in the middle of a call\n")
    sys.stderr.flush()
    os._exit(call.get("code", 7))


@tool
def batch(call: Call) -> object:
    """Its answer inside a JSON array, behind a notification."""
    thing = {"jsonrpc": "2.0", "method": "notifications/vendor/thing", "params": {"batched": True}}
    send([thing, call.response(text("batched"))])
    return None


@tool
def where(call: Call) -> object:
    """The process: pid, cwd, argv, env."""
    here = {"pid": os.getpid(), "cwd": str(Path.cwd()), "argv": sys.argv, "env": {**os.environ}}
    return text(json.dumps(here))


# -- lists ---------------------------------------------------------------------------------------


def described(name: str) -> Json:
    run = TOOLS.get(name)
    entry: Json = {
        "name": name,
        "description": (run and run.__doc__) or f"The tool {name}. It is raw.",
        "inputSchema": {"type": "object", "x-vendor": "schema"},
        "x-vendor": {"cost": 1},
        "_meta": {"vendor/tool": name},
    }
    if name == "schema_mismatch":
        wants = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        entry["outputSchema"] = wants
    return entry


def padded(entries: list[Json], size: int, make: Callable[[int], Json]) -> list[Json]:
    return entries + [make(n) for n in range(len(entries), size)]


def listed(method: str) -> tuple[str, list[Json]]:
    if method == "tools/list":
        tools = [described(name) for name in TOOLS]
        return "tools", padded(tools, flags.tools, lambda n: described(f"filler_{n:04}"))
    if method == "resources/list":
        names = ("text", "blob", "several", "odd", "empty")
        found = [{"uri": f"raw://{name}", "name": name, "x-vendor": 1} for name in names]
        return "resources", padded(
            found, flags.resources, lambda n: {"uri": f"raw://item/{n}", "name": f"item {n}"}
        )
    if method == "resources/templates/list":
        return "resourceTemplates", padded(
            [{"uriTemplate": "raw://item/{id}", "name": "item", "x-vendor": 1}],
            flags.templates,
            lambda n: {"uriTemplate": f"raw://filler/{n}/{{id}}", "name": f"filler {n}"},
        )
    plain: Json = {"name": "plain", "x-vendor": 1}
    arguments = [{"name": "who", "required": True, "x-vendor": 1}]
    return "prompts", padded(
        [plain, {"name": "greet", "arguments": arguments}],
        flags.prompts,
        lambda n: {"name": f"filler_{n}"},
    )


def page(request: Json) -> Json:
    key, entries = listed(request["method"])
    cursor = request.get("params", {}).get("cursor")
    if flags.same_cursor:
        return {key: entries[: flags.page], "nextCursor": "for ever"}
    if cursor is not None and not cursor.startswith(f"{key} from "):
        raise Refused(INVALID_PARAMS, f"not a cursor of {key}: {cursor}", None)
    start = 0 if cursor is None else int(cursor.removeprefix(f"{key} from "))
    end = start + flags.page
    more = {"nextCursor": f"{key} from {end}"} if end < len(entries) else {}
    if flags.claim is not None:
        entries = [{"server": flags.claim, "stale": "no", **entry} for entry in entries]
    return {key: entries[start:end], **more, "x-vendor": "page"}


# -- everything else -----------------------------------------------------------------------------


def contents(uri: str) -> list[Json]:
    blob = base64.b64encode(bytes(range(256))).decode()
    first = {"uri": uri, "mimeType": "text/plain", "text": f"text of {uri}", "x-vendor": 1}
    second = {"uri": uri, "mimeType": "application/octet-stream", "blob": blob}
    odd = {"uri": uri, "pixels": [1, 2, 3], "x-vendor": {"neither": "text nor blob"}}
    if uri.startswith("raw://item/"):
        return [first]
    known: dict[str, list[Json]] = {"text": [first], "blob": [second], "odd": [odd], "empty": []}
    known["several"] = [first, second]
    if uri.removeprefix("raw://") not in known:
        code = INVALID_PARAMS if flags.discover == "modern" else RESOURCE_NOT_FOUND
        raise Refused(code, "resource not found", {"uri": uri})
    return known[uri.removeprefix("raw://")]


def prompt(params: Json) -> Json:
    if params["name"] not in {"plain", "greet"}:
        raise Refused(INVALID_PARAMS, f"unknown prompt {params['name']}", None)
    who = (params.get("arguments") or {}).get("who", "nobody")
    message = {"role": "user", "content": {"type": "text", "text": f"Greet {who}.", "x-vendor": 1}}
    odd = {"role": "user", "content": {"type": "video", "data": "AAAA"}}
    return {"description": "a prompt", "messages": [message, odd], "x-vendor": "prompt"}


def completion(params: Json) -> Json:
    start = params["argument"]["value"]
    values = [f"{start}{n}" for n in range(100)]
    return {"completion": {"values": values, "total": 250, "hasMore": True, "x-vendor": 1}}


def capabilities() -> Json:
    everything: Json = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
        "completions": {},
        "experimental": {"vendor/thing": {"x": 1}},
    }
    return {key: value for key, value in everything.items() if key not in flags.no_capability}


def is_modern(request: Json) -> bool:
    """Whether the request is of the modern era; refused if it is not of the one we speak."""
    if flags.discover != "modern":
        return False
    version = (request.get("params", {}).get("_meta") or {}).get(ENVELOPE + "protocolVersion")
    if request["method"] == "initialize" or version not in {None, MODERN}:
        raise Refused(UNSUPPORTED_VERSION, "unsupported version", {"supported": [MODERN]})
    if version is None:
        raise Refused(INVALID_PARAMS, "the request has no envelope", None)
    return True


INFO = {"name": "raw", "version": "0", "title": "Raw server", "x-vendor": 1}
INSTRUCTIONS = "Raw instructions."
NEEDS = {"completion": "completions", "templates": "resources"}  # method to capability, if unlike
HANDSHAKE_ONLY = {"initialize", "ping", "logging/setLevel"}
HANDSHAKE_ONLY |= {"resources/subscribe", "resources/unsubscribe"}


def answer(request: Json) -> Json | None:
    """The response, or None if there is none, or if a thread will send it."""
    if request["method"] == "tools/call":
        start_call(request)
        return None
    result = result_of(request)
    return None if result is None else {"jsonrpc": "2.0", "id": request["id"], "result": result}


def result_of(request: Json) -> Json | None:
    """The result of any request but a tool call; None if it is not to be answered."""
    method, params = request["method"], request.get("params", {})
    if method == "server/discover" and flags.discover != "modern":
        if flags.discover == "die":
            os._exit(1)
        if flags.discover == "silent":
            return None
    if is_modern(request):
        if method in HANDSHAKE_ONLY:
            raise Refused(METHOD_NOT_FOUND, "method not found", method)
        caching = {"resultType": "complete", "ttlMs": 600_000, "cacheScope": "private"}
        if method == "server/discover":
            meta = {ENVELOPE + "serverInfo": INFO}
            found = {"supportedVersions": [MODERN], "capabilities": capabilities()}
            return {**found, "instructions": INSTRUCTIONS, "_meta": meta, **caching}
        if method == "subscriptions/listen":
            listeners[request["id"]] = params["notifications"]
            meta = {ENVELOPE + "subscriptionId": request["id"]}
            acknowledged = {"notifications": params["notifications"], "_meta": meta}
            notify("notifications/subscriptions/acknowledged", acknowledged)
            return None
        return caching | common(method, request, params)
    if method == "initialize":
        version = flags.version or params.get("protocolVersion")
        found = {"protocolVersion": version, "capabilities": capabilities(), "serverInfo": INFO}
        return {**found, "instructions": INSTRUCTIONS, "x-vendor": "hello"}
    if method in HANDSHAKE_ONLY:
        return {}
    return common(method, request, params)


def common(method: str, request: Json, params: Json) -> Json:
    capability = method.partition("/")[0]
    if NEEDS.get(capability, capability) not in capabilities():
        raise Refused(METHOD_NOT_FOUND, "method not found", method)
    if method.endswith("/list"):
        return page(request)
    if method == "resources/read":
        return {"contents": contents(params["uri"]), "x-vendor": "read"}
    if method == "prompts/get":
        return prompt(params)
    if method == "completion/complete":
        return completion(params)
    raise Refused(METHOD_NOT_FOUND, "method not found", method)


def settle(request: Json, work: Callable[[], Json | None]) -> None:
    """Do the work and send what comes of it: a complete message, or nothing."""
    message: Json | None
    try:
        message = work()
    except Refused as refused:
        code, text, data = refused.args
        error = {"code": code, "message": text} | ({} if data is None else {"data": data})
        message = {"jsonrpc": "2.0", "id": request["id"], "error": error}
    except InputRequired as required:
        asked, state = required.args
        result = {"resultType": "input_required", "inputRequests": asked, "requestState": state}
        message = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    if message is not None:
        send(message)


def start_call(request: Json) -> None:
    if "tools" in flags.no_capability:
        raise Refused(METHOD_NOT_FOUND, "method not found", "tools/call")
    name = request["params"]["name"]
    run = TOOLS.get(name) or (echo if name.startswith("filler_") else None)
    if run is None:
        raise Refused(INVALID_PARAMS, f"unknown tool: {name}", None)
    call = Call(request)  # here, not in its thread: the next line may be its cancellation

    def work() -> Json | None:
        try:
            result = run(call)
        finally:
            if calls.get(call.id) is call.cancelled:  # else: answered early, its id used again
                del calls[call.id]
        return None if result is None else call.response(result)

    threading.Thread(target=settle, args=(request, work), daemon=True).start()


def receive(message: Json) -> None:
    if "method" not in message:
        arrived, kept = answers.get(message["id"], (threading.Event(), {}))
        kept.update(message)
        arrived.set()
    elif "id" not in message:
        if message["method"] == "notifications/cancelled":
            request = message["params"]["requestId"]
            listeners.pop(request, None)
            calls.get(request, threading.Event()).set()  # it may just have been answered
    elif message["method"] not in flags.mute:
        settle(message, lambda: answer(message))


def end_loudly(args: threading.ExceptHookArgs) -> None:
    """A bug in a tool ends the process: nobody should wait for an answer that cannot come."""
    if issubclass(args.exc_type, BrokenPipeError):  # no bug: the client left
        os._exit(0)
    threading.__excepthook__(args)
    os._exit(70)


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--version", metavar="V", help="the answer to initialize; default: what was asked for")
    add("--discover", choices=["error", "silent", "die", "modern"], default="error")
    add("--journal", type=Path, metavar="FILE", help="append every received message")
    add("--tools", type=int, default=0, metavar="N", help="pad the list to N; so for the others")
    add("--tools-in", type=Path, metavar="FILE", help="N is written there as we start")
    add("--resources", type=int, default=0, metavar="N")
    add("--templates", type=int, default=0, metavar="N")
    add("--prompts", type=int, default=0, metavar="N")
    add("--page", type=int, default=100, metavar="SIZE", help="entries of a list in one answer")
    add("--same-cursor", action="store_true", help="every page is the first and names a next one")
    add("--claim", metavar="NAME", help="every entry of a list says that it is this server's")
    add("--no-capability", action="append", default=[], metavar="NAME")
    add("--exit-at-once", type=int, metavar="CODE")
    add("--garbage", action="store_true", help="lines that are not JSON-RPC, and no answer ever")
    add("--silent", action="store_true", help="read, and never answer anything")
    add("--mute", action="append", default=[], metavar="METHOD", help="never answer this one")
    add("--slow-start", type=float, default=0, metavar="SECONDS")
    add("--start-when", type=Path, metavar="FILE", help="serve only once FILE exists")
    add("--stubborn", action="store_true", help="survive SIGTERM and the end of stdin")
    add("--brood", metavar="SECONDS", help="leave processes behind that sleep so long and hide")
    return parser.parse_args(namespace=flags)


HIDDEN = """
trap '' TERM
sleep $1 &
setsid sleep $1 &
(setsid sleep $1 &)
(env -i sleep $1 &)
setsid sh -c '(setsid sleep $1 &)' "$0" $1
"""
"""In our group, in groups of their own, without a parent, without our environment."""


def brood(seconds: str) -> None:
    """They ignore SIGTERM, and hold our pipes. One of them is our own child."""
    subprocess.run(["sh", "-c", HIDDEN, "brood", seconds], check=True)
    subprocess.Popen(["sh", "-c", "trap '' TERM; exec sleep $1", "brood", seconds])


def main() -> None:
    parse_flags()
    threading.excepthook = end_loudly
    journal({"started": os.getpid()})
    if flags.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if flags.brood is not None:
        brood(flags.brood)
    if flags.exit_at_once is not None:
        sys.stderr.write("raw: cannot start, the configuration is missing\n")
        sys.exit(flags.exit_at_once)
    if flags.garbage:
        write(b"Welcome to the raw server!\nlistening on stdio...\n{not json\n")
    time.sleep(flags.slow_start)
    if flags.tools_in is not None and flags.tools_in.exists():
        flags.tools = int(flags.tools_in.read_text())
    while flags.start_when is not None and not flags.start_when.exists():
        time.sleep(0.01)
    for line in sys.stdin.buffer:
        try:
            received = json.loads(line)
        except ValueError:
            journal({"unparsed": line.decode(errors="replace")})
            continue
        for message in received if isinstance(received, list) else [received]:
            journal(message)
            if not (flags.garbage or flags.silent):
                receive(message)
    journal({"eof": True})
    while flags.stubborn:
        signal.pause()


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
