"""What a model has to read until ten tasks are done, and whether all of them can be.

A scripted model has one session with `emceepee stdio` and ten servers that have 240 tools. It knows
nothing but what it was told: our instructions, the descriptions and schemas of our tools, and what
they have answered. So it looks into the list of servers only if it was not told their names. It
goes to the server whose purpose it was told; it searches by words if there is a parameter for them,
else for those words in names; and if that finds nothing it reads the list of all. Every byte is
counted once. What servers say themselves is counted, too, and is the same for every version.

It does so in each view, where it has what that view shows; and last it writes one script that does
what needs no answer of a model in the middle. ``--against PATH`` has another version do the same in
the view ``tools``, beside this one, and shows the ratio: PATH is a virtual environment or a tree of
sources, as from ``git worktree add PATH COMMIT``. ``--corpus DIR``, with a ``tools.json`` as
``search.py`` takes it, also shows what is read before the first task with 3, 10, 30 and 70 servers
of it, in bytes and in tokens, beside all their definitions, which is what a client reads that is
connected to them itself. Exits with 1 if a task was not reached.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Json = dict[str, Any]

VIEWS = ("tools", "core", "code")
SERVERS = (3, 10, 30, 70)
ORIGINAL = 18_400
"""Bytes of the 37 definitions of the emceepee that this one is named after."""
BIG = "big result"
"""Of the tasks, the one that is beside the ten."""

# -- the servers: programs of this very file, of the sizes that such servers have -----------------

PURPOSES = {
    "files": "Read, write and search files below the project's folder.",
    "notes": "A knowledge graph of notes that survives conversations.",
    "browser": "Drive a web browser: navigate, click, fill in, take screenshots.",
    "repository": "Look at and change a git repository.",
    "clock": "The time here and elsewhere, and conversions between zones.",
    "library": "Search and read the documentation of cloud services.",
    "tavily": "Search the web and fetch pages as Markdown.",
    "tickets": "Issues, boards and people of the tracker.",
    "billing": "Customers, invoices and everything else of the accounting.",
    "office": "Reports, registrations and translations.",
}

FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "files": (("read", "write", "move", "search", "describe"), ("file", "folder", "media")),
    "notes": (("create", "append", "delete"), ("note", "relation", "observation")),
    "browser": (("click", "hover", "type", "drag", "wait_for"), ("element", "page", "tab")),
    "repository": (("show", "list", "create", "reset"), ("commit", "branch", "tag")),
    "clock": (("convert", "get"), ("time",)),
    "library": (("search", "read", "recommend"), ("documentation", "region")),
    "tavily": (("lookup", "extract", "crawl"), ("",)),
    "tickets": (("get", "create", "update", "close", "assign"), ("issue", "board", "person")),
    "billing": (
        ("get", "create", "update", "archive", "restore", "export", "import", "send"),
        tuple(f"{kind}_{what}" for kind in ("customer", "supplier") for what in (
            "invoice", "reminder", "contract", "address", "refund", "payment", "credit", "budget",
        )),
    ),
    "office": (("report", "register", "translate", "crash", "export"), ("",)),
}  # fmt: skip

SAID = {
    "lookup": "Search the web for something",
    "crawl": "Follow the links of a site",
    "send_supplier_reminder": "Dun whoever owes us a refund",
}
"""What is said of tools whose names do not say it."""

ROWS = 2_000
"""In what ``export`` answers, which is 100 kB."""

FORM = {
    f"field_{number}": {
        "type": "string",
        "title": f"Field number {number} of the registration",
        "description": "As it stands in the papers, with all accents, and without abbreviations.",
    }
    for number in range(14)
}


def tools(server: str) -> list[Json]:
    verbs, nouns = FAMILIES[server]
    return [_tool(verb, noun) for verb, noun in itertools.product(verbs, nouns)]


def _tool(verb: str, noun: str) -> Json:
    name = f"{verb}_{noun}".rstrip("_")
    what = name.replace("_", " ")
    properties = {
        "id": {"type": "string", "description": f"Which one to {what}, by its identifier or name"},
        "options": {"type": "array", "items": {"type": "string"}, "description": "What else to do"},
        "limit": {"type": "integer", "minimum": 1, "description": "At most so many are returned"},
    }
    return {
        "name": name,
        "title": what.capitalize(),
        "description": (
            f"{SAID.get(name, what.capitalize())}, and return what came of it. "
            "Use this where the user asks for exactly that; ask first if it is not clear which one "
            "is meant. The result is text."
        ),
        "inputSchema": {"type": "object", "properties": properties, "required": ["id"]},
        "annotations": {"readOnlyHint": verb in {"get", "list", "read", "search", "show"}},
    }


def serve(server: str) -> None:
    """A server of 2025-11-25 on stdin and stdout, until stdin ends."""
    lock = threading.Lock()
    asked: dict[str, Any] = {}

    def send(message: Json) -> None:
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            sys.stdout.flush()

    def done(call: Any, said: str, is_error: bool = False) -> None:
        content = [{"type": "text", "text": said}]
        send({"id": call, "result": {"content": content, "isError": is_error}})

    def ask(call: Any, method: str, params: Json) -> None:
        asked[f"question-{call}"] = call
        send({"id": f"question-{call}", "method": method, "params": params})

    def run(call: Any, name: str, args: Json) -> None:
        if "id" not in args:
            done(call, "'id' is a required property", is_error=True)
        elif name == "crash":
            os._exit(3)
        elif name == "export":
            rows = [{"row": n, "name": f"row {n}", "paid": n != ROWS // 3} for n in range(ROWS)]
            done(call, json.dumps(rows))
        elif name == "report":
            threading.Timer(2, done, (call, "the report is done")).start()
        elif name == "register":
            schema = {"type": "object", "properties": FORM, "required": list(FORM)[:3]}
            ask(
                call,
                "elicitation/create",
                {"message": "Who is to be registered?", "requestedSchema": schema},
            )
        elif name == "translate":
            said = {"role": "user", "content": {"type": "text", "text": "Say 'squid' in Greek."}}
            ask(call, "sampling/createMessage", {"messages": [said], "maxTokens": 100})
        else:
            done(call, f"{name} of {args['id']} is done")

    info = {"name": server, "title": server.capitalize(), "version": "1.2.3"}
    for line in sys.stdin:
        message = json.loads(line)
        id, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case "initialize":
                capabilities: Json = {"tools": {"listChanged": True}, "logging": {}}
                version = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
                send({"id": id, "result": version | {"serverInfo": info}})
            case "tools/list":
                send({"id": id, "result": {"tools": tools(server)}})
            case "tools/call":
                run(id, params["name"], params.get("arguments", {}))
            case "ping" | "logging/setLevel":
                send({"id": id, "result": {}})
            case None:
                done(asked.pop(id), f"answered with {json.dumps(message['result'])}")
            case str() if id is not None:
                send({"id": id, "error": {"code": -32601, "message": "Method not found"}})


# -- the model ------------------------------------------------------------------------------------


class Model:
    """All that it has read, by what it was read for, and what it does of its own accord."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.ids = itertools.count(1)
        self.read: dict[str, int] = {}
        self.task = "at the beginning"
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}}
        hello["clientInfo"] = {"name": "scripted-model", "version": "1"}
        self.instructions: str = self._request("initialize", hello)["instructions"]
        self._send({"method": "notifications/initialized"})
        listed = self._request("tools/list", {})["tools"]
        self.tools = {tool["name"]: tool for tool in listed}
        for tool in listed:
            self._reads(_definition(tool))
        self._reads(self.instructions)
        self.purposes = {
            name: dict(re.findall(r"(\w+) \(([^)]*)\)", self.instructions)).get(name, "")
            for name in PURPOSES
            if re.search(rf"\b{name}\b", self.instructions)
        }

    def _reads(self, text: str) -> None:
        self.read[self.task] = self.read.get(self.task, 0) + len(text.encode())

    def _send(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self.process.stdin.flush()

    def _request(self, method: str, params: Json) -> Json:
        number = next(self.ids)
        self._send({"id": number, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == number and "method" not in message:
                result: Json = message["result"]
                return result
        sys.exit("it has ended")

    def use(self, tool: str, /, **arguments: Any) -> str:
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        # A link beside a preview is read as well.
        said = "\n".join(block.get("text") or json.dumps(block) for block in result["content"])
        self._reads(said)
        return said

    def find(self, words: str, wanted: str, server: str = "") -> str:
        """Search for the words; it sees what it wants when it reads of it."""
        for search in ("search", "codemode_search"):
            if search in self.tools:
                said = self.use(search, query=words)
                return said if wanted in said else said + self.use(search, query=wanted)
        if not self.purposes:
            said = self.use("list_servers")
            self.purposes = {name: "" for name in PURPOSES if f'"{name}"' in said}
        if not server:
            fitting = {
                name: sum(word in purpose.lower() for word in words.split())
                for name, purpose in self.purposes.items()
            }
            best = max(fitting, key=lambda name: fitting[name])
            server = best if fitting[best] else ""
        where = {"server": server} if server else {}
        if "query" in self.tools["list_tools"]["inputSchema"]["properties"]:
            said = self.use("list_tools", **where, query=words)
        else:
            said = self.use("list_tools", **where, tool=".*".join(words.split()))
        if f'"{wanted}"' not in said:
            said = self.use("list_tools", **where)
        while f'"{wanted}"' not in said and (page := re.search(r'"cursor":"([^"]+)"', said)):
            said = self.use("list_tools", **where, cursor=page[1])
        return said

    def look_at(self, server: str, tool: str) -> str:
        if "list_tools" not in self.tools:
            search = "search" if "search" in self.tools else "codemode_search"
            return self.use(search, query=tool, server=server, schemas=1, limit=1)
        return self.use("list_tools", server=server, tool=f"^{tool}$")

    def call(self, server: str, tool: str, /, timeout_ms: int = 60_000, **args: Any) -> str:
        return self.call_with(server, tool, args, timeout_ms=timeout_ms)

    def call_with(self, server: str, tool: str, args: Json, **options: Any) -> str:
        if "execute_tool" in self.tools:
            return self.use("execute_tool", server=server, tool=tool, args=args, **options)
        return self.use(
            "codemode_execute", code=f"await call_tool({server!r}, {tool!r}, {args!r})", **options
        )

    def wait(self, said: str) -> str:
        """Until the task that was made of a call has ended; then its result."""
        task = found(r'"task_id": ?"([^"]+)"', said)
        while not re.search(r"task_(completed|failed)", said):
            said = self.use("await_activity")
        return self.use("get_task_result", task_id=task)


def found(pattern: str, said: str) -> str:
    match = re.search(pattern, said)
    return match[1] if match is not None else "none"


# -- its tasks: each returns what it has in the end, which has to contain what is said beside it --


def find(model: Model) -> str:
    said = model.find("search web", "lookup")
    return said if "properties" in said else model.look_at("tavily", "lookup")


def call(model: Model) -> str:
    model.find("convert time", "convert_time", "clock")
    return model.call("clock", "convert_time", id="noon in Oslo")


def slow_call(model: Model) -> str:
    model.find("report", "report", "office")
    said = model.call("office", "report", timeout_ms=500, id="2026")
    return model.wait(said)


def question(model: Model) -> str:
    model.find("register", "register", "office")
    said = model.call("office", "register", id="Ada")
    request = found(r'"(?:request_id|requestId)": ?"([^"]+)"', said)
    answer = {f"field_{number}": "Ada" for number in range(3)}
    said += model.use("respond_to_elicitation", request_id=request, action="accept", content=answer)
    return model.use("get_task_result", task_id=found(r'"task_id": ?"([^"]+)"', said))


def sampling(model: Model) -> str:
    model.find("translate", "translate", "office")
    said = model.call("office", "translate", id="squid")
    request = found(r'"(?:request_id|requestId)": ?"([^"]+)"', said)
    answer = {"type": "text", "text": "kalamari"}
    said += model.use("respond_to_sampling", request_id=request, model="scripted", content=answer)
    return model.use("get_task_result", task_id=found(r'"task_id": ?"([^"]+)"', said))


def big_list(model: Model) -> str:
    """One tool of 128, by what is said of it."""
    said = model.find("dun refund", "send_supplier_reminder", "billing")
    if "properties" not in said:
        model.look_at("billing", "send_supplier_reminder")
    return model.call("billing", "send_supplier_reminder", id="Ada")


def crash(model: Model) -> str:
    said = model.call("office", "crash", id="now")
    return said + model.call("office", "report", timeout_ms=20_000, id="after it")


def wrong_argument(model: Model) -> str:
    said = model.call("clock", "get_time", zone="Oslo")
    assert "required" in said
    said = model.call_with("clock", "get_time", {"id": "Oslo"}, timout_ms=2000)
    return said if "is done" in said else model.call("clock", "get_time", id="Oslo")


def unknown_server(model: Model) -> str:
    said = model.call("clocks", "get_time", id="Oslo")
    assert re.search(r"\bclock\b", said)
    return model.call("clock", "get_time", id="Oslo")


def two_servers(model: Model) -> str:
    model.find("read file", "read_file", "files")
    model.find("append note", "append_note", "notes")
    said = model.call("files", "read_file", id="plan.txt")
    return said + model.call("notes", "append_note", id="plan")


def big_result(model: Model) -> str:
    """The one row of 2,000 that is not paid."""
    model.find("export", "export", "office")
    if "codemode_execute" in model.tools and "execute_tool" not in model.tools:
        code = "[row for row in await call_tool('office', 'export', {'id': '2026'})"
        return model.use("codemode_execute", code=f"{code} if not row['paid']]")
    said = model.call("office", "export", id="2026")
    kept = found(r"emceepee://results/(\w+)", said)
    if kept != "none" and "read_result" in model.tools:
        said = model.use("read_result", id=kept, grep='[^{]*"paid": ?false')
    return said


TASKS: dict[str, tuple[Callable[[Model], str], tuple[str, ...]]] = {
    "find": (find, ("lookup", "properties")),
    "call": (call, ("convert_time of noon in Oslo is done",)),
    "slow call": (slow_call, ("the report is done",)),
    "question": (question, ("answered with", "Ada")),
    "sampling": (sampling, ("answered with", "kalamari")),
    "big list": (big_list, ("send_supplier_reminder of Ada is done",)),
    "crash": (crash, ("SERVER_DISCONNECTED", "the report is done")),
    "wrong argument": (wrong_argument, ("get_time of Oslo is done",)),
    "unknown server": (unknown_server, ("get_time of Oslo is done",)),
    "two servers": (two_servers, ("read_file of plan.txt is done", "append_note of plan is done")),
    BIG: (big_result, ('"row"', f"row {ROWS // 3}")),
}

SCRIPT = """
search_found = await search(query="search web")
converted = await servers.clock.convert_time(id="noon in Oslo")
reported = await servers.office.report(id="2026")
dunned = await servers.billing.send_supplier_reminder(id="Ada")
try:
    crashed = await servers.office.crash(id="now")
except ToolError as error:
    crashed = str(error)
after = await servers.office.report(id="after it")
try:
    wrong = await servers.clock.get_time(zone="Oslo")
except ToolError as error:
    wrong = await servers.clock.get_time(id="Oslo")
try:
    unknown = await servers.clocks.get_time(id="Oslo")
except ToolError as error:
    unknown = await servers.clock.get_time(id="Oslo")
both = await asyncio.gather(
    servers.files.read_file(id="plan.txt"), servers.notes.append_note(id="plan")
)
registered = await servers.office.register(id="Ada")
translated = await servers.office.translate(id="squid")
looked = ["lookup" in str(search_found), "run" in crashed]
[*looked, converted, reported, dunned, after, wrong, unknown, *both, registered, translated]
"""
"""What the ten tasks are. The questions of two of them are answered while it waits."""

DONE = (
    *("true", "convert_time of noon in Oslo is done", "the report is done"),
    *("send_supplier_reminder of Ada is done", "get_time of Oslo is done"),
    *("read_file of plan.txt is done", "append_note of plan is done", "kalamari"),
)


def script(model: Model) -> str:
    """All of it in one call, and an answer to each question."""
    model.task = "one script"
    said = model.use("codemode_execute", code=SCRIPT)
    task = found(r'"task_id": ?"([^"]+)"', said)
    pattern = r'"requestId": ?"([^"]+)"'
    form = {f"field_{number}": "Ada" for number in range(3)}
    while (request := found(pattern, said)) == "none":
        said = model.use("await_activity")
    model.use("respond_to_elicitation", request_id=request, action="accept", content=form)
    asked = re.compile(r'"sampling_requests":\[\{"requestId":"([^"]+)"')
    said = ""
    while (sampling := asked.search(said)) is None:
        said = model.use("await_activity")
    answer = {"type": "text", "text": "kalamari"}
    model.use("respond_to_sampling", request_id=sampling[1], model="scripted", content=answer)
    return model.use("get_task_result", task_id=task)


# -- what is compared -----------------------------------------------------------------------------


@contextmanager
def emceepee(tree: Path | None, servers: Json, view: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Of this version, or of another, with these servers."""
    python, environment = sys.executable, dict(os.environ)
    if tree is not None and (tree / "bin" / "python").exists():
        python = str(tree / "bin" / "python")
    elif tree is not None:
        environment["PYTHONPATH"] = str(tree)
    with tempfile.TemporaryDirectory() as folder:
        environment["XDG_STATE_HOME"] = folder
        config = Path(folder, "config.json")
        config.write_text(json.dumps({"mcpServers": servers}), "utf-8")
        command = [python, "-P", "-m", "emceepee_trio", "stdio", "--config", str(config)]
        with subprocess.Popen(
            [*command, *(("--view", view) if view else ())],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield process
            finally:
                assert process.stdin is not None
                process.stdin.close()


def ten_servers() -> Json:
    here = str(Path(__file__).resolve())
    return {
        name: {
            "command": sys.executable,
            "args": ["-S", here, "--server", name],
            "description": purpose,
        }
        for name, purpose in PURPOSES.items()
    }


def do_all(tree: Path | None, view: str = "") -> dict[str, int]:
    """Bytes by task."""
    with emceepee(tree, ten_servers(), view) as process:
        model = Model(process)
        for task, (run, wanted) in TASKS.items():
            model.task = task
            _check(task, run(model), wanted)
    return model.read


def do_script() -> dict[str, int]:
    with emceepee(None, ten_servers(), "code") as process:
        model = Model(process)
        _check("one script", script(model), DONE)
    return model.read


def _check(task: str, said: str, wanted: Sequence[str]) -> None:
    if not all(each in said for each in wanted):
        sys.exit(f"{task!r} is not reached:\n{said}")


def show_views() -> None:
    views = [do_all(None, view) for view in VIEWS]
    print("Bytes that a model reads\n")
    print(f"{'':<18}" + "".join(f"{view:>9}" for view in (*VIEWS, "script")))
    one = do_script()
    for task in views[0]:
        row = "".join(f"{read[task]:>9}" for read in views)
        print(f"{task:<18}{row}" + (f"{one[task]:>9}" if task in one else ""))
    ten = [sum(count for task, count in read.items() if task != BIG) for read in views]
    print(f"{'one script':<{18 + 9 * len(VIEWS)}}{one['one script']:>9}")
    print(f"{'the ten tasks':<18}" + "".join(f"{n:>9}" for n in (*ten, sum(one.values()))))


def show_versions(tree: Path) -> None:
    this, that = do_all(None), do_all(tree)
    pairs = [(task, this[task], that[task]) for task in this]
    pairs.append(("all", sum(this.values()), sum(that.values())))
    print("Bytes that a model reads\n")
    print(f"{'':<18}{'this':>9}{'that':>9}{'ratio':>8}")
    for task, here, there in pairs:
        print(f"{task:<18}{here:>9}{there:>9}{here / there:>8.2f}")


def show_corpus(folder: Path) -> None:
    """What is read before anything is asked, beside all that could be read."""
    from search import counter  # noqa: PLC0415 - a server of this file has no other packages

    by_server: dict[str, list[Json]] = {}
    for tool in json.loads((folder / "tools.json").read_text("utf-8")):
        by_server.setdefault(tool["server"], []).append(tool)
    name, count = counter()
    print(f"\nBytes and tokens ({name}) before the first task\n")
    print(f"{'servers':>7}{'tools':>7}" + "".join(f"{each:>17}" for each in (*VIEWS, "natively")))
    for number in SERVERS:
        servers = dict(list(by_server.items())[:number])
        texts = [_beginning(list(servers), view) for view in VIEWS]
        texts.append("".join(map(_definition, itertools.chain(*servers.values()))))
        cells = [f"{len(text.encode()):>9} {count(text):>7.0f}" for text in texts]
        print(f"{number:>7}{sum(map(len, servers.values())):>7}" + "".join(cells))
    print(f"The original has {ORIGINAL:,} bytes of definitions, with any number of servers.")


def _beginning(servers: Sequence[str], view: str) -> str:
    """Of a session with servers of these names, which nobody starts."""
    entry = {"command": sys.executable, "start": "lazy"}
    named = {re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:64]: entry for name in servers}
    with emceepee(None, named, view) as process:
        model = Model(process)
        return "".join([*map(_definition, model.tools.values()), model.instructions])


def _definition(tool: Json) -> str:
    schema = {key: tool[key] for key in ("name", "description", "inputSchema")}
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--against", type=Path, metavar="PATH", help="another version")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="definitions of real tools")
    parser.add_argument("--runs", type=int, help="not used here; all benchmarks take it")
    parser.add_argument("--server", choices=PURPOSES, help=argparse.SUPPRESS)
    options, _ = parser.parse_known_args()
    if options.server is not None:
        serve(options.server)
        return
    if options.against is not None:
        show_versions(options.against)
    else:
        show_views()
    if options.corpus is not None:
        show_corpus(options.corpus)


if __name__ == "__main__":
    main()
