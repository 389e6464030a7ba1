"""A model that follows a script, behind the APIs of three vendors; it keeps all that it is sent.

For clients that talk to a model: they are pointed at it, and what their user would pay for is what
is looked at. Not a mock of anything of ours.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import attrs

Json = dict[str, Any]
Step = Callable[[list[str]], tuple[str, Json]]
"""A tool of the client and its arguments, given what the tools before it have answered."""


@attrs.define(eq=False)
class Model:
    script: Sequence[Step]
    port: int = attrs.field(default=0, init=False)
    results: list[str] = attrs.field(factory=list, init=False)
    """What it was sent of the tools' answers, as text, in their order."""
    tools: list[str] = attrs.field(factory=list, init=False)
    sent: str = attrs.field(default="", init=False)
    """All of the last request."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: Json) -> str:
        """Server-sent events."""
        self.sent = json.dumps(body)
        if "/messages" in path:
            return self._anthropic(body)
        if "/responses" in path:
            return self._openai(body)
        return self._gemini(body)

    def next(self, results: list[str], tools: list[str]) -> tuple[str, Json] | None:
        if not tools:
            return None  # asked for something beside the conversation, such as a title
        self.results, self.tools = results, tools
        return self.script[len(results)](results) if len(results) < len(self.script) else None

    def _anthropic(self, body: Json) -> str:
        lists = [m["content"] for m in body["messages"] if isinstance(m["content"], list)]
        blocks = [b for blocks in lists for b in blocks if b.get("type") == "tool_result"]
        tools = [tool["name"] for tool in body.get("tools", [])]
        wanted = self.next([_text(block["content"]) for block in blocks], tools)
        if wanted is None:
            start: Json = {"type": "text", "text": ""}
            delta: Json = {"type": "text_delta", "text": "done"}
        else:
            start = {"type": "tool_use", "id": f"toolu_{len(blocks)}", "name": wanted[0]}
            start["input"] = {}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(wanted[1])}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"]}
        message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        reason = "end_turn" if wanted is None else "tool_use"
        return _events(
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": usage,
            },
            {"type": "message_stop"},
        )

    def _openai(self, body: Json) -> str:
        outputs = [i["output"] for i in body["input"] if i.get("type") == "function_call_output"]
        wanted = self.next([_text(each) for each in outputs], _names(body.get("tools", [])))
        said = [{"type": "output_text", "text": "done"}]
        item: Json = {"type": "message", "role": "assistant", "id": "m", "content": said}
        if wanted is not None:
            space, _, name = wanted[0].rpartition("/")
            number = len(outputs)
            item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}"}
            item |= {"name": name, "namespace": space, "arguments": json.dumps(wanted[1])}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return _events(
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        )

    def _gemini(self, body: Json) -> str:
        parts = [part for content in body["contents"] for part in content["parts"]]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        declared = [d for t in body.get("tools", []) for d in t.get("functionDeclarations", [])]
        wanted = self.next(
            [_text(answer["response"].get("output", answer["response"])) for answer in answers],
            [tool["name"] for tool in declared],
        )
        part: Json = {"text": "done"}
        if wanted is not None:
            part = {"functionCall": {"name": wanted[0], "args": wanted[1]}}
        content = {"role": "model", "parts": [part]}
        counts = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        return f"data: {json.dumps({'candidates': [candidate], 'usageMetadata': counts})}\n\n"


def _names(tools: list[Json]) -> list[str]:
    return [
        name for tool in tools for name in [str(tool.get("name")), *_names(tool.get("tools", []))]
    ]


def _text(said: Any) -> str:
    if isinstance(said, str):
        return said
    if isinstance(said, list):
        return "\n".join(_text(block.get("text", block)) for block in said)
    return json.dumps(said)


def _events(*events: Json) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@contextmanager
def scripted(*script: Step) -> Iterator[Model]:
    model = Model(script)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.reply("", "application/json")

        def do_GET(self) -> None:
            self.reply('{"data": [], "models": []}', "application/json")

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "count" in self.path:
                self.reply('{"input_tokens": 1, "totalTokens": 1}', "application/json")
            else:
                self.reply(model.answer(self.path, body), "text/event-stream")

        def reply(self, text: str, kind: str) -> None:
            data = text.encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        model.port = server.server_port
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
