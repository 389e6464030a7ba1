"""Real children; each says by itself what it is about. Nothing here waits for time to pass."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import sys
import textwrap
import time
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
import trio
import trio.testing
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from emceepee_trio.backend.children import process as module
from emceepee_trio.backend.children.process import TEXT_LINE, Exit, Process, open_process
from emceepee_trio.model.json.intake import Measure, finished
from emceepee_trio.model.json.long.partly import unfolded

MEASURE = Measure(16 * 1024 * 1024, 1_000_000)
PROLOGUE = """\
import json, os, signal, subprocess, sys, time

def say(text, end="\\n"):
    data = (text + end).encode()
    while data:
        data = data[os.write(1, data):]

def note(n, **params):
    say(json.dumps({"jsonrpc": "2.0", "method": "note", "params": {"n": n, **params}}))

def grandchild(code, *args, **options):
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", code, *args], **options)
"""
ECHO = """\
for line in sys.stdin.buffer:
    call = json.loads(line)
    if "id" in call:
        say(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": call.get("params", {})}))
"""
FOREVER = """
while True:
    time.sleep(60)
"""
STUBBORN = (
    """\
signal.signal(signal.SIGTERM, signal.SIG_IGN)
note(0)
os.write(2, b"here to stay\\n")
"""
    + FOREVER
)
# For a grandchild that is to be seen: what it holds open says for how long it lives.
HOLD = "import os, sys, time; held = os.open(sys.argv[1], os.O_WRONLY); os.write(held, b'x')"
HOLD_ON = HOLD + FOREVER


@attrs.define(eq=False)
class Child:
    process: Process
    stderr: list[str]
    noise: list[str]
    heard: trio.MemoryReceiveChannel[str]  # noise, as it comes

    async def send(self, message: JSONRPCRequest | JSONRPCNotification) -> None:
        await self.process.writes.send(SessionMessage(message))

    async def receive(self) -> Any:
        item = await self.process.reads.receive()
        assert isinstance(item, SessionMessage)
        return item.message

    async def everything(self) -> list[Any]:
        """All there is to read, to the end."""
        return [item.message async for item in self.process.reads]  # type: ignore[union-attr]  # fails if it is an error

    def is_gone(self) -> bool:
        """Reaped, and its number is free again."""
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, 0)
            return False
        return self.process.exit is not None


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine is too busy for us; tests that are about haste are hasty themselves."""
    monkeypatch.setattr(module, "LAST_WORDS", 30)


@asynccontextmanager
async def child(
    code: str,
    *args: object,
    limit: int = MEASURE.size,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    on_stderr: Callable[[str], None] | None = None,
    patience: float = 30,
) -> AsyncGenerator[Child]:
    command = [sys.executable, "-I", "-S", "-c", PROLOGUE + textwrap.dedent(code), *map(str, args)]
    stderr: list[str] = []
    noise: list[str] = []
    send, heard = trio.open_memory_channel[str](math.inf)

    def on_noise(line: str) -> None:
        noise.append(line)
        send.send_nowait(line)

    with trio.fail_after(60):
        async with open_process(
            command,
            env=env or {"PATH": os.defpath},
            cwd=cwd,
            measure=Measure(limit, MEASURE.values),
            on_stderr=on_stderr or stderr.append,
            on_noise=on_noise,
        ) as process:
            process.patience = patience
            yield Child(process, stderr, noise, heard)


async def said(*lines: str | bytes, end: bytes = b"\n") -> tuple[list[Any], list[str]]:
    """The messages and the noise of a child that says *lines* and exits."""
    data = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines) + end
    script = """
        call = json.loads(sys.stdin.readline())
        sys.stdout.buffer.write(call["params"]["data"].encode("latin-1"))
    """
    async with child(script) as it:
        await it.send(request(0, data=data.decode("latin-1")))
        return await it.everything(), it.noise


def request(number: int | str, **params: Any) -> JSONRPCRequest:
    return JSONRPCRequest(jsonrpc="2.0", id=number, method="echo", params=params)


def numbers(messages: list[Any]) -> list[int]:
    return [message.params["n"] for message in messages]


@attrs.define(eq=False)
class Holder:
    """Sees when somebody has opened *path* for writing, and when all who have are gone."""

    path: Path
    _stream: trio.lowlevel.FdStream
    _ours: int

    async def is_there(self) -> None:
        assert await self._stream.receive_some(1) == b"x"
        os.close(self._ours)

    async def is_gone(self) -> None:
        with trio.fail_after(60):
            assert await self._stream.receive_some(1) == b""


@pytest.fixture
async def holder(tmp_path: Path) -> AsyncGenerator[Holder]:
    path = tmp_path / "held"
    os.mkfifo(path)
    stream = trio.lowlevel.FdStream(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    async with stream:
        # Without a writer a FIFO is at its end, and none is there yet.
        yield Holder(path, stream, os.open(path, os.O_WRONLY))


@contextmanager
def killed(pid: int) -> Iterator[None]:
    """A grandchild that left the group is ours to end."""
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)


# What is said


async def test_messages_go_both_ways() -> None:
    async with child(ECHO) as it:
        for number in (1, "zwei", 3):
            await it.send(request(number, text="žluťoučký 🐎\n\u2028", none=None))
            answer = await it.receive()
            assert answer == JSONRPCResponse(
                jsonrpc="2.0",
                id=number,
                result={"text": "žluťoučký 🐎\n\u2028", "none": None},
            )
    assert it.is_gone()
    assert it.process.exit == Exit(0, None)
    assert it.process.failure is None
    assert (it.stderr, it.noise) == ([], [])


async def test_a_line_may_come_in_many_writes_and_many_lines_in_one() -> None:
    script = """
        line = json.dumps({"jsonrpc": "2.0", "method": "note", "params": {"n": 0, "t": "é" * 50}})
        for byte in line.encode():
            os.write(1, bytes([byte]))
            time.sleep(0.0005)  # most of them are read by themselves
        say("")
        say("\\n".join([line] * 3))
    """
    async with child(script) as it:
        messages = await it.everything()
    assert [message.params["t"] for message in messages] == ["\u00e9" * 50] * 4
    assert it.noise == []


async def test_a_long_line_passes_in_both_directions() -> None:
    text = "0123456789 \n" * (5 * 1024 * 1024 // 12)
    async with child(ECHO) as it:
        await it.send(request(1, text=text))
        answer = await it.receive()
        assert finished(unfolded(answer.result)) == {"text": text}


async def test_a_line_of_just_the_limit_passes_and_one_byte_more_ends_the_connection() -> None:
    script = """
        line = json.dumps({"jsonrpc": "2.0", "method": "note", "params": {"n": 1, "t": ""}})
        say(line.replace('""', '"' + "x" * (int(sys.argv[1]) - len(line)) + '"'))
        sys.stdin.read()
    """
    async with child(script, 1000, limit=1000) as it:
        assert numbers([await it.receive()]) == [1]
        assert it.process.failure is None
    async with child(script, 1001, limit=1000) as it:
        assert await it.everything() == []
        assert it.process.failure == "message too long (limit 1000 bytes)"
        await it.process.exited.wait()  # ended without our leaving
    assert it.noise == []


async def test_what_came_before_a_too_long_line_is_delivered() -> None:
    script = """
        note(1)
        say("ordinary noise")
        say("y" * 100_000)
        note(2)
    """
    async with child(script, limit=50_000) as it:
        assert numbers(await it.everything()) == [1]
    assert it.noise == ["ordinary noise"]
    assert it.process.failure == "message too long (limit 50000 bytes)"


async def test_an_endless_line_is_never_collected() -> None:
    script = """
        while True:
            say("x" * 4096, end="")
    """
    limit = 1024 * 1024
    tracemalloc.start()
    try:
        async with child(script, limit=limit) as it:
            assert await it.everything() == []
            assert it.process.failure == f"message too long (limit {limit} bytes)"
            await it.process.exited.wait()
            assert it.process.exit == Exit(1, None)  # of a broken pipe: nobody had to be patient
        assert tracemalloc.get_traced_memory()[1] < 6 * limit
    finally:
        tracemalloc.stop()
    assert it.noise == []


async def test_what_is_not_a_message_is_noise() -> None:
    junk = [
        "Server listening on stdio",
        "\u00fcn\u00efc\u00f6de",
        "42",
        "null",
        '"text"',
        "[]",
        "{",
        "{}",
        "[1, 2]",
        "[" * 100_000,
        '{"a": ' * 100_000,
        '{"jsonrpc": "1.0", "method": "m"}',
        '{"jsonrpc": "2.0", "id": 1.5, "method": "m"}',
        '{"jsonrpc": "2.0", "id": true, "method": "m"}',
        '{"jsonrpc": "2.0", "id": false, "result": {}}',
        '{"jsonrpc": "2.0", "id": [], "result": {}}',
        '{"jsonrpc": "2.0", "result": {}}',
        '{"jsonrpc": "2.0", "id": null, "result": {}}',
    ]
    messages, noise = await said(*junk, '{"jsonrpc": "2.0", "method": "end"}')
    assert [message.method for message in messages] == ["end"]
    assert noise == [line[:TEXT_LINE] for line in junk]


async def test_bytes_that_are_no_text_are_noise_and_shown_as_far_as_they_are() -> None:
    broken = b'{"jsonrpc": "2.0", "method": "\xff"}'
    (told,), noise = await said(broken, b"caf\xe9\r", b"\x00\x01")
    assert told.method == "notifications/message"
    assert told.params["data"] == "the server's message is not UTF-8: \ufffd"
    assert noise == ['{"jsonrpc": "2.0", "method": "\ufffd"}', "caf\ufffd", "\x00\x01"]


async def test_empty_lines_and_carriage_returns_do_not_matter() -> None:
    line = b'{"jsonrpc": "2.0", "method": "m"}'
    messages, noise = await said(b"", b"\r", b"  ", line + b"\r", b"", b" " + line)
    assert [message.method for message in messages] == ["m", "m"]
    assert noise == []


@pytest.mark.parametrize(("last", "expected"), [('{"jsonrpc": "2.0", "method": "m"}', 1), ("n", 0)])
async def test_a_last_line_without_its_end_counts(last: str, expected: int) -> None:
    messages, noise = await said(last, end=b"")
    assert len(messages) == expected
    assert noise == [last][expected:]


async def test_noise_is_cut() -> None:
    _, noise = await said("n" * (TEXT_LINE + 1), "\u20ac" * TEXT_LINE, "short")
    assert noise[0] == "n" * TEXT_LINE
    assert noise[1].startswith("\u20ac" * (TEXT_LINE // 3))
    assert len(noise[1]) <= TEXT_LINE // 3 + 1
    assert noise[2:] == ["short"]


async def test_an_endless_flood_of_noise_stalls_nobody() -> None:
    script = """
        note(1)
        while True:
            say("noise\\n" * 10_000)
    """
    async with child(script, patience=0.1) as it, child(ECHO) as other:
        assert numbers([await it.receive()]) == [1]
        for _ in range(50):
            await it.heard.receive()
        await other.send(request(1))
        assert (await other.receive()).id == 1
    assert it.is_gone()


async def test_messages_are_found_in_the_middle_of_noise() -> None:
    script = """
        for n in range(300):
            say("some progress bar\\n" * 100)
            note(n)
    """
    async with child(script) as it:
        assert numbers(await it.everything()) == list(range(300))
    assert len(it.noise) == 300 * 100


async def test_a_batch_is_its_messages() -> None:
    answer = '{"jsonrpc": "2.0", "id": 1, "result": {"a": [1]}}'
    note = '{"jsonrpc": "2.0", "method": "m"}'
    broken = f'[{note}, 5, {{"jsonrpc": "2.0", "id": 2, "result": 3}}]'
    messages, noise = await said(f"[{answer}, {note}]", broken)
    first, second, third, fourth = messages
    assert first == JSONRPCResponse(jsonrpc="2.0", id=1, result={"a": [1]})
    assert second == third == JSONRPCNotification(jsonrpc="2.0", method="m")
    assert isinstance(fourth, JSONRPCError)
    assert fourth.id == 2
    assert noise == [broken]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"jsonrpc": "2.0", "id": 7, "result": []}, "[]"),
        ({"jsonrpc": "2.0", "id": 7, "result": "x" * 10_000}, "xxx...xxx"),
        ({"jsonrpc": "2.0", "id": 7, "error": "no such table"}, "'no such table'"),
        ({"jsonrpc": "2.0", "id": 7, "error": {"code": "E1", "message": "m"}}, "'E1'"),
        ({"jsonrpc": "2.0", "id": "seven", "error": {"code": 1}}, "1"),
        ({"jsonrpc": "2.0", "id": 7}, "None"),
        ({"id": 7, "result": {}}, "{}"),
    ],
)
async def test_a_malformed_answer_reaches_its_caller_as_an_error(
    answer: dict[str, Any], shown: str
) -> None:
    (message,), noise = await said(json.dumps(answer))
    assert isinstance(message, JSONRPCError)
    assert message.id == answer["id"]
    assert message.error.code == INTERNAL_ERROR
    assert message.error.message.startswith("invalid response from the server: ")
    assert all(part in message.error.message for part in shown.split("..."))
    assert len(message.error.message) < 500
    assert noise == []


async def test_a_deeply_nested_malformed_answer_does_no_harm() -> None:
    deep = f'{{"jsonrpc": "2.0", "id": 7, "result": {"[" * 400 + "]" * 400}}}'
    (message,), _ = await said(deep)
    assert isinstance(message, JSONRPCError)


async def test_python_constants_do_not_cost_an_answer() -> None:
    line = '{"jsonrpc": "2.0", "id": 1, "result": {"x": [NaN, Infinity, -Infinity]}}'
    (message,), noise = await said(line)
    assert message.result == {"x": [None, None, None]}
    assert noise == []


async def test_an_error_without_an_id_is_a_message() -> None:
    line = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "m"}}'
    (message,), noise = await said(line)
    assert isinstance(message, JSONRPCError)
    assert message.id is None
    assert noise == []


@pytest.mark.parametrize("value", ["\ud800", "deep"])
async def test_what_pydantic_cannot_dump_is_sent_all_the_same(value: str) -> None:
    sent: Any = value
    if value == "deep":
        for _ in range(400):
            sent = [sent]
    async with child(ECHO) as it:
        await it.send(request(1, value=sent))
        answer = await it.receive()
        if value == "deep":  # it was read there, and is not taken when it comes back
            assert answer.error.message == "the server's message is nested deeper than 200 levels"
        else:
            assert answer.result == {"value": sent}


async def test_a_message_carries_only_what_was_set() -> None:
    script = """
        for line in sys.stdin:
            note(0, line=line)
    """
    async with child(script) as it:
        await it.send(JSONRPCNotification(jsonrpc="2.0", method="m"))
        assert (await it.receive()).params["line"] == '{"jsonrpc":"2.0","method":"m"}\n'
        await it.send(JSONRPCRequest(jsonrpc="2.0", id=1, method="m", params={"a": None}))
        line = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":null}}\n'
        assert (await it.receive()).params["line"] == line


# stderr


async def test_stderr_is_heard_from_its_first_byte_in_lines() -> None:
    script = """
        os.write(2, b"first\\n\\ncr\\r\\nfran\\xe7ais\\n")
        note(1)
        sys.stdin.read()
        os.write(2, b"no end")
    """
    async with child(script) as it:
        await it.receive()
    assert it.stderr == ["first", "", "cr", "fran\ufffdais", "no end"]
    assert it.noise == []


async def test_an_endless_line_of_stderr_comes_in_pieces() -> None:
    script = """
        for _ in range(20 * 1024):
            os.write(2, b"e" * 1024)
        os.write(2, b"\\nlast\\n")
    """
    sizes: list[int] = []
    tracemalloc.start()
    try:
        async with child(script, on_stderr=lambda line: sizes.append(len(line))) as it:
            assert await it.everything() == []
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 20 * 1024 * 1024 + len("last")
    assert set(sizes) == {TEXT_LINE, len("last")}


# How a child ends


@pytest.mark.parametrize("code", [0, 3])
async def test_who_sees_the_end_knows_the_exit_status_and_all_of_stderr(code: int) -> None:
    script = f"""
        for n in range(1000):
            print("line", n, file=sys.stderr)
        sys.exit({code})
    """
    async with child(script) as it:
        with pytest.raises(trio.EndOfChannel):
            await it.receive()
        assert it.process.exit == Exit(code, None)
        assert it.process.exited.is_set()
        assert it.stderr == [f"line {n}" for n in range(1000)]


async def test_the_end_waits_for_a_child_that_closes_stdout_before_it_says_why() -> None:
    script = """
        note(1)
        os.close(1)
        time.sleep(0.2)
        print("why", file=sys.stderr)
        sys.exit(3)
    """
    async with child(script) as it:
        assert numbers(await it.everything()) == [1]
        assert it.process.exit == Exit(3, None)
        assert it.stderr == ["why"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_child_killed_by_a_signal_says_which(number: signal.Signals) -> None:
    async with child(f"os.kill(os.getpid(), {int(number)})") as it:
        assert await it.everything() == []
        assert it.process.exit == Exit(None, number.name)


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert Exit.of(-(signal.SIGRTMIN + 1)) == Exit(None, f"signal {signal.SIGRTMIN + 1}")


async def test_what_a_child_said_before_it_died_is_delivered() -> None:
    script = """
        for n in range(1000):
            note(n)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    async with child(script) as it:
        await it.process.exited.wait()
        assert numbers(await it.everything()) == list(range(1000))


async def test_a_dead_child_is_noticed_though_nobody_reads() -> None:
    script = """
        for n in range(10):
            note(n)
    """
    async with child(script) as it:
        await it.process.exited.wait()
        assert it.process.exit == Exit(0, None)
    assert it.is_gone()


async def test_a_dead_child_is_noticed_though_a_grandchild_holds_its_pipes(holder: Holder) -> None:
    script = f"""
        other = grandchild({HOLD_ON!r}, sys.argv[1], start_new_session=True)
        sys.stdin.readline()
        note(1, pid=other.pid)
        say("more noise")
        say("last words", end="")
        os.write(2, b"why")
    """
    async with child(script, holder.path) as it:
        await holder.is_there()
        await it.send(request(1))
        first = await it.receive()
        with killed(first.params["pid"]):
            assert await it.everything() == []
            assert it.process.exit == Exit(0, None)
            assert it.noise == ["more noise", "last words"]
            assert it.stderr == ["why"]
    await holder.is_gone()


async def test_who_writes_to_a_dead_child_learns_it_though_a_grandchild_holds_its_stdin(
    holder: Holder,
) -> None:
    script = f"""
        other = grandchild({HOLD_ON!r}, sys.argv[1], start_new_session=True)
        note(1, pid=other.pid)
        sys.stdin.readline()
        note(2)
    """

    async def write(it: Child) -> None:
        while True:  # more than the pipe holds
            await it.send(request(1, text="x" * 1000))

    async with child(script, holder.path) as it:
        first = await it.receive()
        with killed(first.params["pid"]):
            await holder.is_there()
            with pytest.raises(anyio.BrokenResourceError):
                await write(it)
            assert it.process.exit == Exit(0, None)
    await holder.is_gone()


async def test_a_grandchild_that_floods_the_pipes_of_a_dead_child_is_not_listened_to(
    holder: Holder,
) -> None:
    flood = HOLD + "\nwhile True: os.write(1, b'flood\\n' * 1000)"
    script = f"""
        other = grandchild({flood!r}, sys.argv[1], start_new_session=True)
        note(1, pid=other.pid)
        sys.stdin.readline()
    """
    async with child(script, holder.path) as it, trio.open_nursery() as nursery:
        at_exit: list[int] = []

        async def count() -> None:
            await it.process.exited.wait()
            at_exit.append(len(it.noise))

        first = await it.receive()
        with killed(first.params["pid"]):
            await holder.is_there()
            nursery.start_soon(count)
            await it.send(request(1))
            assert await it.everything() == []
            assert it.process.exit == Exit(0, None)
    heard = (len(it.noise) - at_exit[0]) * len("flood\n")
    assert heard <= module.LEFT_OVER + 2 * module.CHUNK
    await holder.is_gone()


async def test_a_child_that_closes_stdout_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_WORDS", 0.1)
    script = """
        note(1)
        os.close(1)
        signal.pause()
    """
    async with child(script, patience=0.1) as it:
        assert numbers(await it.everything()) == [1]
        await it.process.exited.wait()
        assert it.process.exit is not None
        assert it.process.exit.signal in ("SIGTERM", "SIGKILL")
        assert it.process.failure is None


async def test_a_child_that_closes_stdin_is_still_read() -> None:
    script = """
        os.close(0)
        note(1)
        signal.sigwait([signal.SIGUSR1])
        note(2)
    """
    script = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n" + textwrap.dedent(
        script
    )
    async with child(script) as it:
        assert numbers([await it.receive()]) == [1]
        await it.send(request(1))
        with pytest.raises(anyio.BrokenResourceError):
            await it.send(request(2))
        os.kill(it.process.pid, signal.SIGUSR1)
        assert numbers(await it.everything()) == [2]
        assert it.process.exit == Exit(0, None)


async def test_the_end_of_writes_is_the_end_of_stdin() -> None:
    script = """
        sys.stdin.read()
        note(1)
    """
    async with child(script) as it:
        it.process.writes.close()
        assert numbers(await it.everything()) == [1]
        assert it.process.exit == Exit(0, None)


async def test_nothing_is_sent_once_writes_have_ended() -> None:
    script = """
        for line in sys.stdin:
            note(json.loads(line)["id"])
    """
    async with child(script) as it:
        await it.send(request(1))
        it.process.writes.close()
        for size in (1, 10_000):
            with pytest.raises(anyio.ClosedResourceError):
                await it.send(request(2, text="x" * size))
        assert numbers(await it.everything()) == [1]


async def test_who_is_cancelled_sends_nothing_more() -> None:
    async with child(ECHO) as it:
        with trio.CancelScope() as scope:
            scope.cancel()
            await it.send(request(1))
        assert scope.cancelled_caught
        await it.send(request(2))
        assert (await it.receive()).id == 2


async def test_a_call_in_flight_fails_when_the_child_dies() -> None:
    script = """
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)
    """

    async def nothing(*args: Any) -> Any: ...

    async with child(script) as it:
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(it.process.reads, it.process.writes)
        async with trio.open_nursery() as nursery:
            await nursery.start(dispatcher.run, nothing, nothing)
            with pytest.raises(MCPError) as caught:
                await dispatcher.send_raw_request("tools/list", None)
            assert caught.value.error.code == CONNECTION_CLOSED
            assert it.process.exit == Exit(None, "SIGKILL")


# How we end it


async def test_a_child_is_asked_first_with_the_end_of_stdin() -> None:
    script = """
        note(1)
        sys.stdin.read()
        print("bye", file=sys.stderr)
    """
    async with child(script) as it:
        await it.receive()
    assert it.is_gone()
    assert it.process.exit == Exit(0, None)
    assert it.stderr == ["bye"]


async def test_then_it_is_told_with_sigterm() -> None:
    script = """
        def bye(*args):
            print("bye", file=sys.stderr, flush=True)
            os._exit(7)
        signal.signal(signal.SIGTERM, bye)
        note(1)
        sys.stdin.read()
        time.sleep(0.2)  # the first step has begun
        print("no", file=sys.stderr, flush=True)
    """
    stderr: list[str] = []

    def on_stderr(line: str) -> None:
        stderr.append(line)
        it.process.patience = 30  # of the next step

    script = textwrap.dedent(script) + FOREVER
    async with child(script, on_stderr=on_stderr, patience=1) as it:
        await it.receive()
    assert it.is_gone()
    assert it.process.exit == Exit(7, None)
    assert stderr == ["no", "bye"]


async def test_then_it_is_forced() -> None:
    async with child(STUBBORN, patience=0.05) as it:
        await it.receive()
    assert it.is_gone()
    assert it.process.exit == Exit(None, "SIGKILL")


async def test_leaving_at_once_is_fine() -> None:
    async with child(ECHO) as it:
        pass
    assert it.is_gone()
    assert it.process.exit == Exit(0, None)


async def test_the_whole_group_goes_with_its_child(holder: Holder) -> None:
    """Both ignore everything that can be ignored."""
    hold = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + HOLD_ON
    script = f"grandchild({hold!r}, sys.argv[1])\n" + STUBBORN
    async with child(script, holder.path, patience=0.05) as it:
        await it.receive()
        await holder.is_there()
        assert os.getpgid(it.process.pid) == os.getsid(it.process.pid) == it.process.pid
    await holder.is_gone()


async def test_what_a_dead_child_leaves_behind_in_its_group_is_ended(holder: Holder) -> None:
    script = f"""
        grandchild({HOLD_ON!r}, sys.argv[1])
        sys.stdin.readline()
    """
    async with child(script, holder.path) as it:
        await holder.is_there()
        await it.send(request(1))
        assert await it.everything() == []
        await holder.is_gone()  # still inside


async def test_what_was_sent_last_is_written_before_stdin_ends() -> None:
    script = """
        for line in sys.stdin:
            print(len(line), line[-2:], file=sys.stderr)
    """
    async with child(script) as it:
        await it.send(request(1, text="x" * 1_000_000))
    assert it.stderr == ["1000062 }", ""]
    assert it.process.exit == Exit(0, None)


async def test_a_cancelled_sender_never_cuts_a_line() -> None:
    script = """
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        note(0)
        signal.sigwait([signal.SIGUSR1])
        for line in sys.stdin:
            call = json.loads(line)
            note(call["id"], size=len(call["params"]["text"]))
    """
    size = 1_000_000
    async with child(script) as it:
        assert numbers([await it.receive()]) == [0]
        async with trio.open_nursery() as nursery:
            for number in (1, 2, 3):  # more than the pipe holds; nobody reads it yet
                nursery.start_soon(it.send, request(number, text="x" * size))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        os.kill(it.process.pid, signal.SIGUSR1)
        await it.send(request(4, text=""))
        seen: list[Any] = []
        while not seen or seen[-1].params["n"] != 4:
            seen.append(await it.receive())
        # Which of them was first is the scheduler's choice; the others were never taken.
        assert len(seen) == 2
        assert seen[0].params["n"] in (1, 2, 3)
        assert seen[0].params["size"] == size
    assert it.noise == []


async def test_messages_keep_their_order_whatever_their_size() -> None:
    script = """
        note(0)
        for line in sys.stdin:
            note(json.loads(line)["id"])
    """
    sizes = [10_000, 1, 1, 100_000, 1, 5000, 5000, 1, 4096, 1]
    async with child(script) as it:
        await it.receive()
        for number, size in enumerate(sizes):
            await it.send(request(number, text="x" * size))
        it.process.writes.close()
        assert numbers(await it.everything()) == list(range(len(sizes)))


async def test_a_child_that_never_reads_can_be_left() -> None:
    async with child(STUBBORN, patience=0.05) as it:
        await it.receive()
        await it.send(request(1, text="x" * 1_000_000))
        await trio.testing.wait_all_tasks_blocked()
    assert it.is_gone()


async def test_a_child_that_has_much_to_say_can_say_it_before_it_exits() -> None:
    """It would never exit by itself if nobody emptied the pipe."""
    script = """
        for n in range(20_000):
            note(n)
        print("done", file=sys.stderr)
    """
    async with child(script) as it:
        assert numbers([await it.receive()]) == [0]
    assert it.process.exit == Exit(0, None)
    assert it.stderr == ["done"]


async def test_leaving_is_bounded_even_if_somebody_keeps_reads_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LAST_WORDS", 0.1)
    script = """
        while True:
            note(1)
    """
    async with child(script, patience=0.05) as it:
        clone = it.process.reads.clone()
        await it.receive()
    clone.close()
    assert it.is_gone()


async def test_what_the_body_raises_arrives_as_it_is() -> None:
    cause = OSError("why")
    error = LookupError("mine")
    with pytest.raises(LookupError) as caught:
        async with child(ECHO) as it:
            raise error from cause
    assert caught.value is error
    assert error.__cause__ is cause
    assert it.is_gone()

    group = ExceptionGroup("mine", [LookupError()])
    with pytest.raises(ExceptionGroup) as caught_group:  # noqa: ASYNC401 - the group itself is looked at
        async with child(ECHO) as it:
            raise group
    # Not itself: any scope on the way may have split it. But not wrapped either.
    assert caught_group.value.message == "mine"
    assert caught_group.value.exceptions == group.exceptions
    assert it.is_gone()


async def test_cancelling_takes_the_same_steps() -> None:
    script = """
        note(1)
        sys.stdin.read()
        print("bye", file=sys.stderr)
        sys.exit(5)
    """
    with trio.CancelScope() as scope:
        async with child(script) as it:
            await it.receive()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert it.is_gone()
    assert it.process.exit == Exit(5, None)
    assert it.stderr == ["bye"]


async def test_cancelling_while_it_ends_changes_nothing() -> None:
    with trio.CancelScope() as scope:
        async with child(STUBBORN, patience=0.05) as it:
            await it.receive()
            scope.cancel()
    assert not scope.cancelled_caught
    assert it.is_gone()


async def test_many_connections_end_together_with_their_nursery() -> None:
    children: list[Child] = []

    async def hold(task_status: trio.TaskStatus[None]) -> None:
        async with child(ECHO) as it:
            children.append(it)
            task_status.started()
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            await nursery.start(hold)
        nursery.cancel_scope.cancel()
    assert len(children) == 5
    assert all(it.is_gone() for it in children)


async def test_a_callback_that_raises_ends_the_block_and_the_child() -> None:
    def on_stderr(line: str) -> None:
        raise ZeroDivisionError(line)

    with pytest.RaisesGroup(ZeroDivisionError):
        async with child(STUBBORN, on_stderr=on_stderr) as it:
            await trio.sleep_forever()
    assert it.is_gone()


async def test_of_two_errors_neither_hides_the_other() -> None:
    def on_stderr(line: str) -> None:
        raise ZeroDivisionError(line)

    script = """
        sys.stdin.read()
        print("bye", file=sys.stderr)
    """
    with pytest.RaisesGroup(LookupError, pytest.RaisesGroup(ZeroDivisionError)):
        async with child(script, on_stderr=on_stderr) as it:
            raise LookupError
    assert it.is_gone()


# How it starts


async def test_a_child_gets_just_the_environment_and_the_folder_it_is_given(tmp_path: Path) -> None:
    script = """
        note(0, cwd=os.getcwd(), env=dict(os.environ))
    """
    async with child(script, cwd=str(tmp_path), env={"ONE": "1"}) as it:
        params = (await it.receive()).params
    assert params["cwd"] == os.fspath(tmp_path)
    params["env"].pop("LC_CTYPE", None)  # python's own
    assert params["env"] == {"ONE": "1"}


async def test_pid_and_start_are_known_and_arguments_not_shown() -> None:
    before = time.time()
    async with child("note(os.getpid())", "--api-key=secret") as it:
        assert before <= it.process.started_at <= time.time()
        assert numbers([await it.receive()]) == [it.process.pid]
        assert "secret" not in repr(it.process)


@pytest.mark.parametrize("what", ["missing", "not executable", "cwd"])
async def test_a_start_that_fails_raises_what_the_system_said(what: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    command, cwd, number = {
        "missing": (str(tmp_path / "missing"), None, errno.ENOENT),
        "not executable": (str(tmp_path / "plain"), None, errno.EACCES),
        "cwd": (sys.executable, str(tmp_path / "missing"), errno.ENOENT),
    }[what]
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        async with open_process(
            [command], env={}, cwd=cwd, measure=MEASURE, on_stderr=print, on_noise=print
        ):
            pytest.fail("it started")
    assert caught.value.filename == (cwd or command)
