"""What bad servers say, in all that a server can say; and how one behind a URL says it.

Lines by method, in which two marks stand for the id and the progress token of what they answer.
How it goes wrong is up to `mistakes.py` and `growing.py`.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from http_server import EVENTS, JSON, Manner
from mistakes import CONTAINERS, SCALARS, bodies, spelled
from play import FORM, RESULTS, SAMPLE, Json, Lines


def message(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def question(request_id: Any, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


URL_FORM = {"mode": "url", "message": "go", "url": "https://example.com", "elicitationId": "e"}
SAID = [
    message("notifications/progress", progressToken="@TOKEN@", progress=1, total=2, message="m"),
    message("notifications/message", level="warning", logger="l", data={"text": "x"}),
    message("notifications/tools/list_changed"),
    message("notifications/resources/list_changed"),
    message("notifications/prompts/list_changed"),
    message("notifications/resources/updated", uri="demo://one"),
    message("notifications/cancelled", requestId="q1", reason="r"),
    message("notifications/elicitation/complete", elicitationId="e"),
    message("notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True}),
    message("notifications/of/its/own", x=1),
    question("q1", "elicitation/create", FORM),
    question(2, "elicitation/create", URL_FORM),
    question("q3", "sampling/createMessage", SAMPLE),
    question("q4", "roots/list", {}),
    question(5, "ping", {}),
    question("q6", "no/such", {}),
]
INPUT = {
    "resultType": "input_required",
    "inputRequests": {
        "a": {"method": "elicitation/create", "params": FORM},
        "b": {"method": "roots/list"},
    },
    "requestState": "state",
}


def answer(result: Any) -> Json:
    return {"jsonrpc": "2.0", "id": "@ID@", "result": result}


def results(method: str) -> list[Json]:
    """What an honest server may answer: its result, an error."""
    error = {"code": -32602, "message": "no", "data": {"why": ["x"]}}
    more = [{**RESULTS[method], "nextCursor": "more"}] if method.endswith("/list") else []
    if method == "tools/call":
        more = [INPUT, {**RESULTS[method], "isError": True}]
    return [
        *map(answer, [RESULTS[method], *more]),
        {"jsonrpc": "2.0", "id": "@ID@", "error": error},
    ]


TASK = {"taskId": "t", "status": "working", "ttl": 5000, "pollInterval": 10, "pollIntervalMs": 10}
TASKS: dict[str, list[Json]] = {
    "tools/call": [{"task": TASK}, {"resultType": "task", **TASK}],
    "tasks/get": [
        TASK,
        {**TASK, "status": "completed", "result": RESULTS["tools/call"]},
        {**TASK, "status": "failed", "error": {"code": -32000, "message": "m"}},
        {**TASK, "status": "input_required", "inputRequests": INPUT["inputRequests"]},
    ],
    "tasks/result": [RESULTS["tools/call"]],
    "tasks/update": [{"resultType": "complete"}],
    "tasks/cancel": [{**TASK, "status": "cancelled"}],
}
"""What a server answers whose tools are tasks of its own, in either era."""
_CAPABLE = {
    "tools": {},
    "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}
_ECHO = {**RESULTS["tools/list"]["tools"][0], "execution": {"taskSupport": "required"}}


@st.composite
def tasks(draw: st.DrawFn, era: str) -> Lines:
    """What such a server says, with mistakes in one thing that it says of tasks."""
    hello = "server/discover" if era == "modern" else "initialize"
    said: dict[str, Json] = {
        hello: {**RESULTS[hello], "capabilities": _CAPABLE},
        "tools/list": {"tools": [_ECHO]},
    }
    said |= {method: draw(st.sampled_from(known)) for method, known in TASKS.items()}
    said["tools/call"] = TASKS["tools/call"][era == "modern"]
    instead: Lines = {method: [spelled(answer(result)).encode()] for method, result in said.items()}
    wrong = draw(st.sampled_from(["tools/call", "tasks/get", "tasks/get", *TASKS]))
    if draw(st.booleans()):
        key = draw(st.sampled_from(["status", *said[wrong]]))
        other = {**said[wrong], key: draw(st.sampled_from([*CONTAINERS, *SCALARS]))}
        instead[wrong] = [spelled(answer(other)).encode()]
    else:
        instead[wrong] = [draw(bodies(st.just(answer(said[wrong])), most=1))]
    return instead


@st.composite
def plays(draw: st.DrawFn) -> Lines:
    """What is said instead of the right answers, by method; most answers are right."""
    instead: Lines = {}
    for method in draw(st.sets(st.sampled_from(sorted(RESULTS)), min_size=1, max_size=3)):
        said = draw(st.lists(bodies(st.sampled_from(SAID)), max_size=3))
        said += draw(st.lists(bodies(st.sampled_from(results(method))), max_size=2))
        instead[method] = said
    if draw(st.booleans()):
        instead["tools/call"] = [
            *draw(st.lists(bodies(st.sampled_from(SAID)), min_size=1, max_size=4)),
            *draw(st.lists(bodies(st.sampled_from(results("tools/call"))), max_size=1)),
        ]
    if draw(st.integers(0, 3)) == 0:
        instead["start"] = draw(st.lists(bodies(st.sampled_from(SAID)), max_size=2))
    return instead


eras = st.sampled_from(["handshake", "handshake", "modern"])


SOON = {"enabled": True, "base_delay_ms": 50, "max_delay_ms": 50, "jitter": 0}
"""How soon a server is connected again."""


# -- behind a URL --------------------------------------------------------------------------------

STATUSES = [*[200] * 12, 202, 204, 400, 401, 403, 404, 405, 409, 413, 429, 500, 503, 599]
KINDS = [*[JSON] * 6, *[EVENTS] * 6, "text/plain", "", "application/json; charset=utf-16", "x"]
SESSION_IDS = [None, None, "session", "", "a b", "x" * 5000, "s,s"]
manners = st.builds(
    Manner,
    st.sampled_from(STATUSES),
    st.sampled_from(KINDS),
    st.sampled_from(SESSION_IDS),
    st.sampled_from(
        [b"", b"", b"", b"retry: 1\n", b"id: 1\n", b"\xef\xbb\xbf", b"x\n", b": c\n\n"]
    ),
    st.sampled_from([b"\n\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n", b"", b"\ndata: x\n\n"]),
)
