"""A server of 2025-11-25 with tasks of its own, on stdin and stdout; writes down all it gets.

``python tasking_server.py JOURNAL``. Its tool ``research`` has to be called as a task, which works
for as many polls as its argument says and then ends as it says; ``either`` may be, and must not be.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]
RESEARCH = {
    "name": "research",
    "inputSchema": {"type": "object"},
    "execution": {"taskSupport": "required"},
}
EITHER = {
    "name": "either",
    "inputSchema": {"type": "object"},
    "execution": {"taskSupport": "optional"},
}
DAY = "2026-11-01T00:00:00Z"

tasks: dict[str, Json] = {}
"""By id: the arguments, how often it was asked for, and the requests that wait for its result."""


def send(message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def shown(task_id: str) -> Json:
    task = tasks[task_id]
    arguments = task["arguments"]
    if task["polls"] < arguments.get("polls", 1):
        status = "working"
    elif arguments.get("asks") and not task["answer"]:
        status = "input_required"
    else:
        status = arguments.get("ends", "completed")
    return {
        "taskId": task_id,
        "status": status,
        "createdAt": DAY,
        "lastUpdatedAt": DAY,
        "ttl": task["ttl"],
        "pollInterval": 10,
        "statusMessage": f"poll {task['polls']}",
    }


def result_of(task_id: str) -> Json:
    task = tasks[task_id]
    if task["arguments"].get("ends") == "failed":
        return {"content": [{"type": "text", "text": "no luck"}], "isError": True}
    said = task["answer"] or "found"
    return {"content": [{"type": "text", "text": said}], "vendor": {"kept": 1}}


def answer(message: Json) -> Json | None:
    """The result of a request; None for one that is answered later."""
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            capable: Json = {
                "tools": {},
                "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
            }
            info = {"name": "tasking", "version": "0"}
            agreed = params["protocolVersion"]
            return {"protocolVersion": agreed, "capabilities": capable, "serverInfo": info}
        case "tools/list":
            return {"tools": [RESEARCH, EITHER]}
        case "tools/call" if "task" in params:
            task_id = f"task-{len(tasks)}"
            given = params.get("arguments", {})
            tasks[task_id] = {"arguments": given, "polls": 0, "answer": "", "waiting": None}
            tasks[task_id]["ttl"] = params["task"].get("ttl")
            return {"task": shown(task_id)}
        case "tools/call":
            return {"content": [{"type": "text", "text": "at once"}]}
        case "tasks/get":
            found = shown(params["taskId"])
            tasks[params["taskId"]]["polls"] += 1
            return found
        case "tasks/result" if shown(params["taskId"])["status"] == "input_required":
            tasks[params["taskId"]]["waiting"] = message["id"]
            schema = {"type": "object", "properties": {"topic": {"type": "string"}}}
            asked = {"message": "About what?", "requestedSchema": schema}
            asked["_meta"] = {"io.modelcontextprotocol/related-task": {"taskId": params["taskId"]}}
            send({"id": params["taskId"], "method": "elicitation/create", "params": asked})
            return None
        case "tasks/result":
            return result_of(params["taskId"])
        case "tasks/cancel":
            return shown(params["taskId"]) | {"status": "cancelled"}
    return {}


def main() -> None:
    with Path(sys.argv[1]).open("a", encoding="utf-8") as journal:
        for line in sys.stdin:
            journal.write(line)
            journal.flush()
            message = json.loads(line)
            if "method" not in message:
                task_id = message["id"]
                tasks[task_id]["answer"] = message["result"]["content"]["topic"]
                send({"id": tasks[task_id]["waiting"], "result": result_of(task_id)})
            elif message["method"] == "tools/call" and (
                message["params"]["name"] == "research" and "task" not in message["params"]
            ):
                error = {"code": -32601, "message": "research requires task augmentation"}
                send({"id": message["id"], "error": error})
            elif "id" in message and (said := answer(message)) is not None:
                send({"id": message["id"], "result": said})


if __name__ == "__main__":
    main()
