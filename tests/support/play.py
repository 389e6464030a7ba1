"""What a server says, as a value, and who plays it: the same in memory, on pipes and behind a URL.

`memory_peers.scripted` and `http_server.HttpServer` carry what a :class:`Part` says; on pipes it is
:func:`perform`. :func:`program` is the entry of a program that does that, which is this file
(``python play.py FILE``), and :func:`coded` of one that makes its play itself: of what is long, or
behaves as no play does. Stdlib only, so that it starts quickly.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:  # else the program would wait for it
    from pathlib import Path

Json = dict[str, Any]
Lines = dict[str, list[bytes]]
Era: TypeAlias = Literal["handshake", "modern"]

VERSION, MODERN = "2025-11-25", "2026-07-28"
ID, TOKEN = b'"@ID@"', b'"@TOKEN@"'
"""In whatever a server is told to say: the id and the progress token of the request it answers."""
ARGUMENTS, RAW = b'"@ARGUMENTS@"', b'"@RAW@"'
"""The arguments of the call, as a text; and the one named ``say``, as it stands."""

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {}}}},
    {"name": "ask", "description": "Asks. Then answers.", "inputSchema": {"type": "object"}},
    {"name": "never", "inputSchema": {"type": "object"}},
]
ECHOED: Json = {"content": [{"type": "text", "text": "@ARGUMENTS@"}], "isError": False}
FORM = {
    "mode": "form",
    "message": "name?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    },
}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
    "modelPreferences": {"hints": [{"name": "m"}]},
}
CAPABILITIES: Json = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "completions": {},
    "logging": {},
}


def greetings(name: str, capabilities: Json, **more: Any) -> Json:
    """What it says of itself, in either era."""
    info = {"name": name, "version": "0"}
    return {
        "initialize": {
            "protocolVersion": VERSION,
            "capabilities": capabilities,
            "serverInfo": info,
            **more,
        },
        "server/discover": {
            "supportedVersions": [MODERN],
            "capabilities": capabilities,
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": info},
        },
    }


RESULTS: Mapping[str, Json] = {
    **greetings("scripted", CAPABILITIES, instructions="none"),
    "ping": {},
    "tools/list": {"tools": TOOLS, "ttlMs": 1000},
    "tools/call": {
        "content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "demo://one", "text": "x"}},
        ],
        "structuredContent": {"a": [1, 2.5, None]},
        "isError": False,
        "_meta": {"x": 1},
    },
    "resources/list": {"resources": [{"uri": "demo://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "demo://{x}", "name": "x"}]},
    "resources/read": {"contents": [{"uri": "demo://one", "text": "one"}, {"blob": "AAAA"}]},
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "whom"}]}]},
    "prompts/get": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "description": "d",
    },
    "completion/complete": {"completion": {"values": ["ada"], "total": 1, "hasMore": False}},
    "logging/setLevel": {},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
}
"""What an honest server answers, by method."""


def text(text: str) -> Json:
    return {"type": "text", "text": text}


def results_of(tools: Iterable[str]) -> dict[str, Json]:
    """For one that has just these tools."""
    schema = {"type": "object"}
    listed = [{"name": name, "inputSchema": schema} for name in tools]
    hello = greetings("scripted", {"tools": {}})["initialize"]
    return {"initialize": hello, "ping": {}, "tools/list": {"tools": listed}}


def answered(result: Any) -> bytes:
    """The line that answers whatever is asked."""
    return _line(id="@ID@", result=result)


class Play:
    """What a server says; may be changed while it is played."""

    def __init__(
        self,
        instead: Lines | None = None,
        era: Era = "handshake",
        *,
        results: Mapping[str, Json] = RESULTS,
        tools: Mapping[str, Json] | None = None,
    ) -> None:
        self.instead = {} if instead is None else instead
        """Lines by method, or ``tools/call NAME``, for which nothing else is said. In memory and on
        pipes those of "start" come first of all; behind a URL, to who listens."""
        self.era = era
        self.results = results
        """By method; a method that is missing is not found."""
        self.tools = {"echo": ECHOED} if tools is None else tools
        """Results of calls, by the name of their tool; of others, that of the method.

        Without ``instead`` and a result, ``never`` is not answered, ``ask`` asks for a form (in the
        handshake era) and answers what was said, ``progress`` reports three times, ``big`` is as
        long as its ``size``."""
        self.at_last: Json | None = None
        """An error or a result: what answers a call of ``never`` once anything else is asked."""
        self.heard: list[Json] = []
        """By all who play it."""

    def lies(self, message: Json) -> list[bytes] | None:
        """The lines that are said instead of an answer."""
        method = message.get("method")
        if method == "tools/call":
            of_tool = self.instead.get(f"{method} {message['params'].get('name')}")
            if of_tool is not None:
                return filled(of_tool, message)
        lines = self.instead.get(str(method))
        return None if lines is None else filled(lines, message)


def filled(lines: Iterable[bytes], request: Json) -> list[bytes]:
    """With what the marks stand for."""
    params = request.get("params") or {}
    arguments = params.get("arguments") or {}
    marks = {
        ID: json.dumps(request.get("id")),
        TOKEN: json.dumps((params.get("_meta") or {}).get("progressToken")),
        ARGUMENTS: json.dumps(json.dumps(arguments)),
        RAW: str(arguments.get("say")) if isinstance(arguments, dict) else "",
    }
    found = []
    for line in lines:
        for mark, meant in marks.items():
            if mark in line:
                line = line.replace(mark, meant.encode())
        found.append(line)
    return found


class Said(NamedTuple):
    line: bytes
    of: Any
    """Id of the request for which it is said."""
    is_last: bool


class Part:
    """Says a play on one connection: hears a message, and has something to say, or not."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self._questions = 0
        self._asking: dict[str, Json] = {}
        """Calls that wait for an answer of the client, by the id of our question."""
        self._unanswered: Any = None
        """The id of the last call of ``never``."""

    def hear(self, message: Json) -> list[Said]:
        self.play.heard.append(message)
        method, request_id = message.get("method"), message.get("id")
        if method is None:
            call = self._asking.pop(str(request_id), None)
            return [] if call is None else [self._got(call, message)]
        if request_id is None:
            return []
        lies = self.play.lies(message)
        if lies is not None:
            return [Said(line, request_id, n == len(lies)) for n, line in enumerate(lies, 1)]
        is_known = method in self.play.results or method == "tools/call"
        if not is_known or (method == "server/discover" and self.play.era == "handshake"):
            error = {"code": -32601, "message": "Method not found"}
            return [self._said(message, error=error)]
        tool = message["params"].get("name") if method == "tools/call" else None
        if tool == "never":
            self._unanswered = request_id
            return []
        found = []
        if self.play.at_last is not None:
            late = {"id": self._unanswered}
            found.append(self._said(late, **self.play.at_last))
        return [*found, *self._answers(message, tool)]

    def _answers(self, message: Json, tool: str | None) -> list[Said]:
        play, of = self.play, message["id"]
        if tool in play.tools:
            return [self._said(message, result=play.tools[str(tool)])]
        if tool == "ask" and play.era == "handshake":
            self._questions += 1
            question = f"q{self._questions}"
            self._asking[question] = message
            asked = {"id": question, "method": "elicitation/create", "params": FORM}
            return [Said(_line(**asked), of, is_last=False)]
        if tool == "big":
            content = [text("x" * message["params"]["arguments"]["size"])]
            return [self._said(message, result={"content": content})]
        found = []
        if tool == "progress":
            token = message["params"]["_meta"]["progressToken"]
            for step in range(3):
                said = {"progressToken": token, "progress": step}
                told = _line(method="notifications/progress", params=said)
                found.append(Said(told, of, is_last=False))
        result = play.results.get(message["method"], {})
        return [*found, self._said(message, result=result)]

    def _got(self, call: Json, answer: Json) -> Said:
        content = [text(json.dumps(answer))]
        return self._said(call, result={"content": content, "structuredContent": {"got": answer}})

    def _said(self, request: Json, **answer: Any) -> Said:
        if self.play.era == "modern" and "result" in answer:
            answer["result"] = {"resultType": "complete", **answer["result"]}
        (line,) = filled([_line(id=request["id"], **answer)], request)
        return Said(line, request["id"], is_last=True)


def _line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


# -- a program -----------------------------------------------------------------------------------


def program(
    play: Play, folder: Path, *, flood: tuple[int, bytes, int] | None = None
) -> dict[str, Any]:
    """The entry of one that says it; reads it from a file in that folder.

    *flood*: a file descriptor, a line, and how many bytes of such lines are written there before
    each call is answered.
    """
    lines = {method: [line.hex() for line in said] for method, said in play.instead.items()}
    said: Json = {"era": play.era, "results": dict(play.results), "tools": dict(play.tools)}
    if flood is not None:
        said["flood"] = (flood[0], flood[1].hex(), flood[2])
    file = folder / "play.json"
    file.write_text(json.dumps({**said, "instead": lines}), "utf-8")
    return {"command": sys.executable, "args": ["-I", "-S", __file__, str(file)]}


def coded(code: str) -> dict[str, Any]:
    """The entry of a program that runs this, with all that is here: most of them end in a perform.

    Those that say more than answers begin with a :func:`hello`.
    """
    here = os.path.dirname(__file__)  # noqa: PTH120 - without pathlib, see above
    before = f"import json, os, sys, time\nsys.path.insert(0, {here!r})\nfrom play import *\n"
    return {"command": sys.executable, "args": ["-I", "-S", "-c", before + code]}


def hello() -> None:
    """Answers the first request, which is how the handshake begins."""
    for said in Part(Play()).hear(json.loads(sys.stdin.buffer.readline())):
        write(said.line)


def write(line: bytes, to: int = 1) -> None:
    data = line + b"\n"
    while data:
        data = data[os.write(to, data) :]


def perform(play: Play, flood: tuple[int, bytes, int] | None = None) -> None:
    """On stdin and stdout."""
    part = Part(play)
    for line in play.instead.get("start", ()):
        write(line)
    for received in sys.stdin.buffer:
        message = json.loads(received)
        if flood is not None and message.get("method") == "tools/call":
            to, line, size = flood
            write(((line + b"\n") * (size // (len(line) + 1) + 1))[:-1], to)
        for said in part.hear(message):
            write(said.line)


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - without pathlib, see above
        read: Json = json.load(file)
    instead = {key: list(map(bytes.fromhex, lines)) for key, lines in read["instead"].items()}
    flood = read.get("flood")
    if flood is not None:
        flood = (flood[0], bytes.fromhex(flood[1]), flood[2])
    perform(Play(instead, read["era"], results=read["results"], tools=read["tools"]), flood)


if __name__ == "__main__":
    main()
