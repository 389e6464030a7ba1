"""What a backend says of its own accord: in order, to whom it concerns, whatever its shape."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from mcp import MCPError

from emceepee_trio.backend.connections import connect
from emceepee_trio.backend.connections.callbacks import (
    STDERR_TAIL,
    WORD,
    Abandoned,
    Callbacks,
    Over,
)
from emceepee_trio.config import Retry
from emceepee_trio.model.events import ServerDisconnected
from fake_backends import raw
from play import coded
from recording import Recorder, running

GUARD = 60
FLOOD = """\
hello()
n = 0
while True:
    n += 1
    print(json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}))
"""

CHATTY = """\
hello()
n = 0
for _ in range(20):
    for _ in range(30):
        n += 1
        print(json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}))
    sys.stdout.flush()
    answered = 0
    while answered < 30:
        answered += json.loads(sys.stdin.readline()).get("result") == {}
print(json.dumps({"jsonrpc": "2.0", "method": "notifications/done"}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def host() -> Recorder:
    return Recorder()


def callbacks(host: Recorder, stale: list[str] | None = None) -> Callbacks:
    changed: list[str] = [] if stale is None else stale
    return Callbacks("it", host, changed.append, lambda: "server_disconnected", lambda: None)


def why() -> Abandoned:
    return "call_ended"


# -- notifications -------------------------------------------------------------------------------


@pytest.mark.parametrize("discover", ["error", "modern"])
async def test_what_was_said_before_an_answer_is_heard_before_it(discover: str) -> None:
    with trio.fail_after(GUARD):
        async with running(raw("--discover", discover)) as it:
            await it.backend.connection()
            if discover == "modern":
                await it.backend.follow_changes()
            await it.call("notify_many", n=100, k=1)
            told = [params for method, params in it.host.notices if method.endswith("/thing")]
            assert [said and said["n"] for said in told] == list(range(100))
            assert told[7] == {"n": 7, "x-vendor": {"deep": [7]}}
            assert len(it.host.notices) == 103
            await it.call("log_many", level="error", n=2)
            logged = [entry for entry in it.host.logs if entry[0] == "protocol"]
            assert logged == [("protocol", "error", {"n": n}, "raw") for n in (0, 1)]


def test_a_list_that_changed_is_told_to_the_lists_and_to_the_host(host: Recorder) -> None:
    changed: list[str] = []
    heard = callbacks(host, changed).heard
    for kind in ("tools", "resources", "prompts"):
        assert heard(f"notifications/{kind}/list_changed", None)
    assert changed == ["tools", "resources", "resource_templates", "prompts"]
    assert len(host.notices) == 3


def test_what_belongs_to_the_protocol_is_no_news(host: Recorder) -> None:
    heard = callbacks(host).heard
    for method in ("cancelled", "progress", "message", "subscriptions/acknowledged"):
        assert heard(f"notifications/{method}", {"requestId": 1})
        assert heard(f"notifications/{method}", None)
    assert not host.notices


def test_progress_goes_to_whoever_asked_for_it(host: Recorder) -> None:
    side = callbacks(host)
    seen: list[Any] = []
    side.progress[1], side.progress["1"] = seen.append, lambda said: seen.append("text")
    tokens: list[Any] = [1, "1", 2, 1.5, [1], {}, None]
    for token in tokens:
        side.heard("notifications/progress", {"progressToken": token, "progress": 1})
    assert seen == [{"progressToken": 1, "progress": 1}, "text"]


@pytest.mark.parametrize("odd", [None, 7, ["x"], {"a": 1}, "x" * 10_000])
def test_a_log_message_of_any_shape_is_one(odd: Any, host: Recorder) -> None:
    callbacks(host).heard("notifications/message", {"level": odd, "logger": odd, "data": odd})
    ((source, level, data, logger),) = host.logs
    assert (source, data) == ("protocol", odd)
    assert isinstance(level, str)
    assert isinstance(logger, str)
    assert max(len(level), len(logger)) <= WORD
    callbacks(host).heard("notifications/message", {})
    assert host.logs[1] == ("protocol", "info", None, None)


# -- questions -----------------------------------------------------------------------------------


async def test_what_needs_nobody_is_answered_at_once(host: Recorder) -> None:
    host.told_roots = [{"uri": "file:///"}]
    side = callbacks(host)
    assert await side.answer("ping", None, why) == {}
    assert await side.answer("roots/list", None, why) == {"roots": [{"uri": "file:///"}]}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", None),
        ("elicitation/create", {}),
        ("elicitation/create", "message"),
        ("elicitation/create", ["message"]),
        ("sampling/createMessage", {"message": "x"}),
        ("sampling/createMessage", 5),
        ("tools/list", {}),
        (None, None),
        (["ping"], {}),
        ({}, {}),
    ],
)
async def test_a_question_of_any_odd_shape_is_refused(
    method: Any, params: Any, host: Recorder
) -> None:
    with pytest.raises(MCPError):
        await callbacks(host).answer(method, params, why)
    assert not host.questions


# -- a child's other words -----------------------------------------------------------------------


async def test_stderr_and_noise_are_logged_and_the_tail_is_kept() -> None:
    with trio.fail_after(GUARD):
        async with running(raw()) as it:
            await it.call("stderr", n=STDERR_TAIL + 5, line="line")
            await it.call("garbage")
            lines = [("stderr", "info", f"line {n}", None) for n in range(STDERR_TAIL + 5)]
            await it.host.until(lambda: lines[-1] in it.host.logs)
            assert [entry for entry in it.host.logs if entry[0] == "stderr"] == lines
            noise = [data for source, _, data, _ in it.host.logs if source == "stdout"]
            assert noise[:2] == ["this is not JSON", '{"broken": ']
            client = await it.backend.connection()
            assert list(client.callbacks.stderr) == [line[2] for line in lines[5:]]


# -- the end -------------------------------------------------------------------------------------


async def test_the_end_is_told_once_and_before_anybody_runs() -> None:
    told: list[str | None] = []
    over = Over(lambda: told.append(over.why))
    woken: list[list[str | None]] = []

    async def wait() -> None:
        await over.wait()
        woken.append([*told])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        assert not over.is_set()
        over.set("first")
        over.set("second")
        assert told == ["first"]
    assert woken == [["first"]]
    assert over.is_set()
    assert over.why == "first"


async def test_a_child_that_only_asks_and_never_reads_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "UNREAD", 50)
    flood = coded(FLOOD) | {"era": "handshake"}
    with trio.fail_after(GUARD):
        async with running(flood | {"restart": Retry(enabled=False)}) as it:
            lost = await it.host.wait_for(ServerDisconnected)
            assert lost.reason == "did not read 50 answers to its requests"
            assert not lost.was_intentional


async def test_a_child_that_asks_a_lot_and_reads_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connect, "UNREAD", 50)
    chatty = coded(CHATTY) | {"era": "handshake"}
    with trio.fail_after(GUARD):
        async with running(chatty) as it:
            await it.host.until(lambda: it.host.notices)
            assert not it.host.all(ServerDisconnected)
