"""The daemon in the process of the test, which sends it real signals."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio

from emceepee_trio import daemon
from emceepee_trio.config import Config, ConfigError, Http, Policy, Server
from emceepee_trio.config.treatment import ServerResults
from emceepee_trio.daemon import Insecure, Rereading, Settings, resolved
from emceepee_trio.model.json.problems import Problem
from emceepee_trio.serving import listen
from emceepee_trio.serving.binds import Bind, Bound, CannotListen, Tcp, Unix, listening
from emceepee_trio.serving.connection import SEND_PATIENCE
from emceepee_trio.session.manager import SessionManager
from emceepee_trio.waits import garbage
from emceepee_trio.web.token_file import BadToken
from emceepee_trio.web.tokens import Credentials, find
from fake_backends import Journal, raw
from raw_http import ANY_PORT, Peer

GUARD = 60
EVERYWHERE = Tcp("0.0.0.0", 0)

Json = dict[str, Any]


def credentials(**tokens: str) -> Credentials:
    return find(Http(tokens=tokens), None, Path(), {})


@attrs.define(eq=False)
class Running:
    """A daemon, and what a service manager hears of it."""

    hears: socket.socket
    settings: Settings
    """What it reads next."""
    error: Exception | None = None
    """What it gets instead."""
    port: int = 0
    order: list[str] = attrs.field(factory=list)
    over: trio.Event = attrs.field(factory=trio.Event)

    def read(self) -> Settings:
        if self.error is not None:
            raise self.error
        return self.settings

    def announce(self, settings: Settings, sockets: Sequence[Bound]) -> None:
        self.order.append("announced")
        self.port = next((s.socket.getsockname()[1] for s in sockets if not s.is_unix), 0)

    async def run(self, *binds: Bind) -> None:
        await daemon.run(binds, self.read, self.announce)
        self.over.set()

    def heard(self) -> list[str]:
        """What the service manager was told since, but for the time."""
        while True:
            try:
                self.order.append(self.hears.recv(1000).decode().split("\n")[0])
            except BlockingIOError:
                said, self.order = self.order, []
                return said

    async def hear(self, *wanted: str) -> None:
        said: list[str] = []
        while len(said) < len(wanted):
            said += self.heard()
            await trio.sleep(0.005)
        assert said == list(wanted)

    def client(self, token: str = "a") -> httpx.AsyncClient:
        headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
        }
        base = f"http://127.0.0.1:{self.port}"
        return httpx.AsyncClient(base_url=base, headers=headers, trust_env=False, timeout=GUARD)

    async def peer(self) -> Peer:
        return Peer(await trio.open_tcp_stream("127.0.0.1", self.port))


@contextmanager
def prepared(
    monkeypatch: pytest.MonkeyPatch, *servers: Server, grace: float = 0.0, **config: Any
) -> Iterator[Running]:
    """Everything but the daemon."""
    monkeypatch.delenv("EMCEEPEE_TOKEN", raising=False)
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hears:
        hears.bind(f"{folder}/notify")
        hears.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", f"{folder}/notify")
        whole = Config(servers=servers, shutdown_grace_ms=round(grace * 1000), **config)
        with trio.fail_after(GUARD):
            yield Running(hears, Settings(whole, credentials(ada="a")))


@asynccontextmanager
async def running(
    monkeypatch: pytest.MonkeyPatch,
    *servers: Server,
    bind: Bind = ANY_PORT,
    **more: Any,
) -> AsyncGenerator[Running]:
    """A daemon that is ready; stopped at the end of the block, unless it was before."""
    with prepared(monkeypatch, *servers, **more) as it:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(it.run, bind)
            await it.hear("announced", "READY=1")
            yield it
            if not it.over.is_set():
                tell(signal.SIGTERM)


def tell(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


async def initialize(client: httpx.AsyncClient) -> str:
    """A session of the handshake era; its id."""
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "0"},
    }
    answer = await client.post("/mcp", json=rpc(1, "initialize", params))
    assert answer.status_code == 200, answer.text
    session = answer.headers["mcp-session-id"]
    client.headers["mcp-session-id"] = session
    told = await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert told.status_code == 202
    return str(session)


def rpc(number: int, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


async def call(client: httpx.AsyncClient, tool: str, **arguments: Any) -> Json:
    """The first block of a tool's answer."""
    asked = rpc(2, "tools/call", {"name": tool, "arguments": arguments})
    answer = await client.post("/mcp", json=asked)
    assert answer.status_code == 200, answer.text
    if "event-stream" in answer.headers["content-type"]:
        lines = [line for line in answer.text.splitlines() if line.startswith("data: {")]
        data = json.loads(lines[-1].removeprefix("data: "))
    else:
        data = answer.json()
    block: Json = json.loads(data["result"]["content"][0]["text"])
    return block


# -- the beginning -------------------------------------------------------------------------------


async def test_it_is_ready_last_and_stops_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(monkeypatch) as it:
        async with it.client() as client:
            assert (await client.get("/readyz")).status_code == 200
        tell(signal.SIGTERM)
        await it.over.wait()
        assert it.heard() == ["STOPPING=1"]


async def test_an_interrupt_stops_it_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(monkeypatch) as it:
        tell(signal.SIGINT)
        await it.over.wait()


async def test_a_port_that_is_taken_ends_it_before_anything_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with prepared(monkeypatch, Server("raw", **raw())) as it:
        with listening([ANY_PORT]) as (taken,):
            port = taken.socket.getsockname()[1]
            with pytest.raises(CannotListen, match="in use"):
                await it.run(Unix(tmp_path / "s"), Tcp("127.0.0.1", port))
        assert it.heard() == []
        assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("error", [ConfigError([Problem("a", "b")]), BadToken("c")])
async def test_settings_that_are_wrong_end_it_before_anything_begins(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with prepared(monkeypatch) as it:
        it.error = error
        with pytest.raises(type(error)):
            await it.run(ANY_PORT)
        assert it.heard() == []


async def test_without_tokens_it_does_not_listen_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with prepared(monkeypatch) as it:
        it.settings = Settings(Config(), None)
        with pytest.raises(Insecure, match="--no-auth"):
            await it.run(ANY_PORT, EVERYWHERE)
        assert it.heard() == []


async def test_without_tokens_it_listens_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with prepared(monkeypatch) as it:
        it.settings = Settings(Config(shutdown_grace_ms=0), None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(it.run, ANY_PORT)
            await it.hear("announced", "READY=1")
            async with it.client(token="none") as client:
                assert (await client.get("/status")).status_code == 200
            tell(signal.SIGTERM)


def test_only_where_this_machine_alone_can_connect_may_programs_be_started() -> None:
    def spawn(*binds: Bind, policy: Policy | None = None) -> str | None:
        with listening(binds) as sockets:
            return resolved(Config(policy=policy or Policy()), sockets).policy.spawn

    with TemporaryDirectory() as folder:
        unix = Unix(Path(folder) / "s")
        assert spawn(ANY_PORT) == spawn(unix) == spawn(unix, ANY_PORT) == "allow"
        assert spawn(EVERYWHERE) == spawn(ANY_PORT, EVERYWHERE) == "deny"
        assert spawn() == "deny"  # under a foreign server nobody knows
        assert spawn(EVERYWHERE, policy=Policy(spawn="allow")) == "allow"
        assert spawn(ANY_PORT, policy=Policy(spawn="deny")) == "deny"


# -- a flood ------------------------------------------------------------------------------------


async def test_a_flood_of_connections_is_not_noticed_by_a_living_session(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listen, "MOST_CONNECTIONS", 100)
    async with running(monkeypatch) as it, it.client() as client, AsyncExitStack() as flood:
        await initialize(client)
        client.headers["connection"] = "close"  # or the flood may close what waits for a request
        asked: Json = {"name": "await_activity", "arguments": {"timeout_ms": 900_000}}
        async with (
            client.stream("GET", "/mcp") as stream,
            client.stream("POST", "/mcp", json=rpc(5, "tools/call", asked)) as waiting,
        ):
            said = stream.aiter_raw()
            for n in range(300):
                peer = await it.peer()
                await flood.enter_async_context(peer.stream)
                if n % 3:  # the others say nothing at all
                    await peer.send("POST /mcp HTTP/1.1\nHost: " + "x" * (n % 2))
                if n % 50 == 0:
                    assert (await call(client, "list_servers")) == {"servers": []}
            assert "too_many_connections" in caplog.messages
            await call(client, "set_timer", duration_ms=100, message="mine")
            assert b"timer_expired" in await waiting.aread()
            tell(signal.SIGTERM)
            # To the end it has said nothing; that it ends now says that it was there.
            assert [part async for part in said if not part.startswith(b":")] == []
        await it.over.wait()


# -- the end -------------------------------------------------------------------------------------


async def test_what_is_under_way_may_finish(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gate, journal = tmp_path / "gate", Journal(tmp_path / "journal")
    server = Server("raw", **raw(*journal.flags))
    async with running(monkeypatch, server, grace=GUARD) as it, it.client() as client:
        await initialize(client)
        async with trio.open_nursery() as nursery:

            async def work() -> None:
                asked = {"server": "raw", "tool": "slow", "args": {"file": str(gate)}}
                params = {"name": "execute_tool", "arguments": asked}
                answer = await client.post("/mcp", json=rpc(3, "tools/call", params))
                assert "the file is there" in answer.text

            nursery.start_soon(work)
            await journal.wait_for_method("tools/call")
            tell(signal.SIGTERM)
            await it.hear("STOPPING=1")
            with pytest.raises(OSError, match="connect"):
                await it.peer()
            gate.touch()
        await it.over.wait()


async def test_long_polls_and_streams_return_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(monkeypatch, grace=1000 * GUARD) as it, it.client() as client:
        await initialize(client)
        asked = {"name": "await_activity", "arguments": {"timeout_ms": 900_000}}
        # Headers come before the answer; from then on it waits.
        async with client.stream("POST", "/mcp", json=rpc(5, "tools/call", asked)) as polled:
            async with client.stream("GET", "/mcp") as stream:
                tell(signal.SIGTERM)
                assert b'"id":5' in await polled.aread()
                assert stream.status_code == 200
                await stream.aread()
        await it.over.wait()


async def test_who_waits_for_a_task_is_told_at_once_that_it_will_not_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server("raw", **raw())
    async with running(monkeypatch, server, grace=1000 * GUARD) as it, it.client() as client:
        await initialize(client)
        slow = {"server": "raw", "tool": "slow", "args": {}, "timeout_ms": 0}
        asked: Json = {"name": "execute_tool", "arguments": slow}
        assert "Promoted" in (await client.post("/mcp", json=rpc(3, "tools/call", asked))).text
        (task,) = (await call(client, "list_tasks"))["tasks"]
        asked = {"name": "get_task_result", "arguments": {"task_id": task["task_id"]}}
        async with client.stream("POST", "/mcp", json=rpc(5, "tools/call", asked)) as polled:
            tell(signal.SIGTERM)
            answer = await polled.aread()
        said = json.loads(answer.split(b"data: ")[-1])
        assert said["id"] == 5
        error = json.loads(said["result"]["content"][0]["text"])["error"]
        assert error["code"] == "TOOL_ERR_TIMEOUT"
        assert "the daemon is stopping" in error["message"]
        assert error["details"]["task"]["status"] == "working"
        await it.over.wait()


WHOLE = Server("raw", **raw(), results=ServerResults(inline_bytes=0))
"""Shows all of an answer, however long."""


async def test_a_reader_that_stops_reading_does_not_keep_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grace = 0.2
    async with running(monkeypatch, WHOLE, grace=grace) as it:
        async with it.client() as client:
            session = await initialize(client)
        async with await big_answer_unread(it, session):
            tell(signal.SIGTERM)
            with trio.fail_after(grace + 5):
                await it.over.wait()


async def test_a_second_signal_skips_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(monkeypatch, WHOLE, grace=1000 * GUARD) as it:
        async with it.client() as client:
            session = await initialize(client)
        async with await big_answer_unread(it, session):
            tell(signal.SIGTERM)
            await it.hear("STOPPING=1")
            await trio.sleep(0.05)
            assert not it.over.is_set()
            tell(signal.SIGINT)
            with trio.fail_after(SEND_PATIENCE / 2):
                await it.over.wait()


async def big_answer_unread(it: Running, session: str) -> trio.SocketStream:
    """A connection on which more is being sent than anybody reads."""
    peer = await it.peer()
    peer.stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asked = {"server": "raw", "tool": "big", "args": {"size": 12_000_000}}
    body = json.dumps(rpc(4, "tools/call", {"name": "execute_tool", "arguments": asked}))
    await peer.send(
        f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{it.port}\nAuthorization: Bearer a\n"
        "Content-Type: application/json\nAccept: application/json, text/event-stream\n"
        f"Mcp-Session-Id: {session}\nContent-Length: {len(body)}\n\n{body}"
    )
    # The head of a stream comes before there is an answer, which an end of the daemon would end.
    await peer.until(b"x" * 1000)
    return peer.stream


async def test_what_sessions_were_that_have_ended_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = trio.Event()
    monkeypatch.setattr(garbage, "MANY", 2)
    monkeypatch.setattr(garbage, "gc", SimpleNamespace(collect=looked.set))
    async with running(monkeypatch) as it:
        for _ in range(2):
            assert not looked.is_set()
            async with it.client() as client:
                await initialize(client)
                assert (await client.delete("/mcp")).is_success
        await looked.wait()


# -- reading the settings again ------------------------------------------------------------------


async def test_a_reload_changes_servers_under_open_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch, Server("old", **raw())) as it, it.client() as client:
        await initialize(client)
        it.settings = attrs.evolve(it.settings, config=Config(servers=(Server("new", **raw()),)))
        tell(signal.SIGHUP)
        await it.hear("RELOADING=1", "READY=1")
        servers = (await call(client, "list_servers"))["servers"]
        assert [server["name"] for server in servers] == ["new"]


async def test_settings_that_are_wrong_change_nothing_and_every_problem_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(monkeypatch, Server("old", **raw())) as it, it.client() as client:
        await initialize(client)
        for error in (ConfigError([Problem("a", "b"), Problem("c", "d")]), BadToken("e")):
            it.error = error
            tell(signal.SIGHUP)
            await it.hear("RELOADING=1", "READY=1")
        servers = (await call(client, "list_servers"))["servers"]
        assert [server["name"] for server in servers] == ["old"]
    said = [vars(r)["fields"]["problem"] for r in caplog.records if r.message == "reload_failed"]
    assert said == ["a: b", "c: d", "e"]


async def test_a_token_may_be_changed_and_its_sessions_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch) as it, it.client("a") as client:
        await initialize(client)
        it.settings = attrs.evolve(it.settings, credentials=credentials(ada="b", bob="c"))
        tell(signal.SIGHUP)
        await it.hear("RELOADING=1", "READY=1")
        assert (await client.post("/mcp", json={})).status_code == 401
        client.headers["authorization"] = "Bearer b"
        assert (await call(client, "list_servers"))["servers"] == []
        client.headers["authorization"] = "Bearer c"
        asked = rpc(9, "tools/call", {"name": "list_servers", "arguments": {}})
        assert (await client.post("/mcp", json=asked)).status_code == 404


async def test_a_reload_changes_who_may_call_and_what_may_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch) as it, it.client() as client:
        elsewhere = {"host": "proxy.example"}
        assert (await client.get("/status", headers=elsewhere)).status_code == 403
        await initialize(client)
        changed = Config(http=Http(allowed_hosts=("proxy.example",)), policy=Policy(spawn="deny"))
        it.settings = attrs.evolve(it.settings, config=changed)
        tell(signal.SIGHUP)
        await it.hear("RELOADING=1", "READY=1")
        assert (await client.get("/status", headers=elsewhere)).status_code == 200
        refused = await call(client, "add_server", name="x", command="true")
        assert refused["error"]["code"] == "TOOL_ERR_DENIED"


async def test_a_reload_does_not_allow_what_was_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(monkeypatch, bind=EVERYWHERE) as it, it.client() as client:
        await initialize(client)
        for _ in range(2):
            refused = await call(client, "add_server", name="x", command="true")
            assert refused["error"]["code"] == "TOOL_ERR_DENIED"
            tell(signal.SIGHUP)
            await it.hear("RELOADING=1", "READY=1")


async def test_a_bug_in_reading_is_told_to_who_asks_and_stays_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(monkeypatch) as it, it.client("own") as client:
        await have_own_token(it)
        it.error = RuntimeError("a bug")
        answer = await client.post("/api/reload", json={})
        assert answer.status_code == 400
        (problem,) = answer.json()["error"]["details"]["problems"]
        assert problem.startswith("internal error (log id ")
        assert (await client.get("/status")).json()["configuration"]["problems"] == [problem]
        it.error = None
        assert (await client.post("/api/reload", json={})).status_code == 200
        assert (await client.get("/status")).json()["configuration"]["problems"] == []


async def test_a_bug_in_what_is_made_of_settings_ends_no_daemon(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether a program has asked for them or a signal came, which nobody answers."""

    def bug(*_: object) -> None:
        raise RuntimeError("a bug")

    async with running(monkeypatch, Server("old", **raw())) as it, it.client("own") as client:
        await have_own_token(it)
        it.settings = attrs.evolve(it.settings, config=Config())
        with monkeypatch.context() as broken:
            broken.setattr(SessionManager, "reload", bug)
            tell(signal.SIGHUP)
            await it.hear("RELOADING=1", "READY=1")
            answer = await client.post("/api/reload", json={})
            details = answer.json()["error"]["details"]
            (problem,) = details["problems"]
            assert problem.startswith("internal error (log id ")
            assert "may be gone by" in details["outcome"]
        said = (await client.get("/status")).json()["configuration"]
        assert (said["problems"], said["is_in_part"]) == ([problem], True)
        assert [r.message for r in caplog.records].count("reload_failed") == 2
        await initialize(client)
        servers = (await call(client, "list_servers"))["servers"]
        assert [server["name"] for server in servers] == ["old"]


def test_who_has_it_read_again_as_it_stops_is_told_that_it_is_not() -> None:
    reading = Rereading(lambda: Settings(Config(), None))
    reading.first()
    went_by: list[Settings] = []
    reading.go_by = went_by.append
    assert reading.again() == []
    reading.go_by = None
    (problem,) = reading.again()
    assert "about to stop" in problem
    assert len(went_by) == 1
    assert reading.to_json()["problems"] == []  # it is no mistake of the file


async def have_own_token(it: Running) -> None:
    """That of who runs it, who may have it read its settings again."""
    own = find(Http(), None, Path(), {"EMCEEPEE_TOKEN": "own"})
    it.settings = attrs.evolve(it.settings, credentials=own)
    tell(signal.SIGHUP)
    await it.hear("RELOADING=1", "READY=1")


async def test_when_it_stops_it_reads_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(monkeypatch, WHOLE, grace=1000 * GUARD) as it:
        async with it.client() as client:
            session = await initialize(client)
        async with await big_answer_unread(it, session):
            tell(signal.SIGTERM)
            await it.hear("STOPPING=1")
            it.error = AssertionError("read again")
            tell(signal.SIGHUP)
            tell(signal.SIGTERM)
            await it.over.wait()
        assert it.heard() == ["STOPPING=1"]
