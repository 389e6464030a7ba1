from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio
from prometheus_client import REGISTRY
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from emceepee_trio.config import Config, Server
from emceepee_trio.config.bounds import SLOW_STEP_MS
from emceepee_trio.errors import NotFound
from emceepee_trio.journal import Journal, Reader
from emceepee_trio.model import facts
from emceepee_trio.model.states import TaskState
from emceepee_trio.session.manager import SessionManager, open_sessions
from emceepee_trio.session.session import Session
from emceepee_trio.telemetry.labels import Labels
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Request
from emceepee_trio.waits.watchdog import SlowSteps
from emceepee_trio.web.metrics.scrape import Metrics, reference
from emceepee_trio.web.metrics.standing import of_daemon, standing
from fake_backends import raw, until
from served import serve
from stalls import steps_measured

GUARD = 60
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
Values = Mapping[tuple[str, frozenset[tuple[str, str]]], float]


@attrs.define(eq=False)
class World:
    manager: SessionManager
    metrics: Metrics

    async def scrape(self) -> Values:
        text, _ = await self.metrics.text("")
        return read(text.decode())

    async def call(self, session: Session, tool: str, **asked: object) -> None:
        request = Request(session, self.manager)
        said = {"server": "raw", "tool": tool, **asked}
        await TOOLBOX.get("execute_tool").call(request, said)


def read(text: str) -> Values:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float:
    return values[f"emceepee_{name}", frozenset(labels.items())]


@asynccontextmanager
async def open_world(*servers: Server) -> AsyncGenerator[World]:
    with trio.fail_after(GUARD):
        async with open_sessions(Config(servers=servers)) as manager:
            metrics = Metrics(manager)
            with metrics.reading():
                yield World(manager, metrics)


async def test_who_shares_is_counted() -> None:
    entry = Server("raw", **raw(), scope="principal")
    async with open_world(entry) as world:
        sessions = [await world.manager.ensure(f"s{n}", "ada") for n in range(2)]
        sessions.append(await world.manager.ensure("s3", "bob"))
        await world.call(sessions[0], "echo", args={"text": "x"})
        hubs = world.manager.sharing
        assert hubs is not None
        await until(lambda: all(hub.backend.client is not None for hub in hubs.hubs()))
        values = await world.scrape()
        assert value(values, "leases", server="raw") == 3
        assert value(values, "shared_connections", server="raw") == 2
        (hub,) = hubs.hubs("ada")
        hub.split("sampling")
        values = await world.scrape()
        assert value(values, "leases", server="raw") == 1
        labels = {"server": "raw", "why": "sampling"}
        assert value(values, "share_conflicts_total", **labels) == 1


async def test_calls_tasks_and_questions_are_seen_as_they_are() -> None:
    async with open_world(Server("raw", **raw())) as world:
        session = await world.manager.ensure("0123456789abcdefghijklmnopqrstuv", "ada")
        await world.call(session, "echo", args={"text": "hello"})
        with pytest.raises(NotFound):
            await world.call(session, "nothing")
        await world.call(session, "string_id_question", timeout_ms=0)
        await until(lambda: session.questions.has_open)
        values = await world.scrape()
        echo = {"server": "raw", "tool": "echo", "outcome": "completed"}
        assert value(values, "call_duration_seconds_count", **echo) == 1
        missing = {"server": "raw", "tool": "other", "outcome": "failed"}
        assert value(values, "call_duration_seconds_count", **missing) == 1
        assert value(values, "promotions_total", server="raw") == 1
        assert value(values, "sessions") == 1
        assert value(values, "calls_under_way", waiting_on="question") == 1
        assert value(values, "calls_under_way", waiting_on="answer") == 0
        assert value(values, "tasks_working") == 1
        assert value(values, "questions_open", kind="elicitation") == 1
        assert value(values, "oldest_question_age_seconds") >= 0
        assert value(values, "backends", server="raw", state="connected") == 1
        assert value(values, "children", server="raw") == 1
        assert value(values, "children_resident_bytes", server="raw") > 1_000_000
        assert value(values, "call_arguments_bytes_total", server="raw") > 0
        assert value(values, "facts_dropped_total", reader="log") == 0
        world.manager.end(session, "DELETE")
        await until(lambda: not session.backends)
        values = await world.scrape()
        assert value(values, "sessions") == 0
        assert value(values, "sessions_ended_total", reason="DELETE") == 1
        cancelled = {"server": "raw", "tool": "string_id_question", "outcome": "cancelled"}
        assert value(values, "call_duration_seconds_count", **cancelled) == 1


async def test_names_of_peers_cannot_break_the_text() -> None:
    evil = 'a"} 1\nemceepee_sessions 99\\'
    async with open_world() as world:
        for name in (evil, "half \ud800", "\r\n# TYPE x", "{}", "long" * 1000):
            world.manager.journal.note(
                facts.CallSettled, "s", "c", name, name, TaskState.COMPLETED, False, 1, None
            )
        for accept in ("", OPENMETRICS):
            text, content_type = await world.metrics.text(accept)
            said = text.decode()
            lines = [line for line in said.splitlines() if "sessions 99" in line]
            assert all(line.startswith("emceepee_call_duration_seconds") for line in lines)
            if accept:
                assert content_type.startswith("application/openmetrics-text")
                assert list(parse_openmetrics(said))  # type: ignore[no-untyped-call]  # has no types
            else:
                assert value(read(said), "sessions") == 0
        assert "_created" not in said


async def test_a_daemon_counts_for_itself() -> None:
    async with open_world() as one, open_world() as other:
        await one.manager.ensure("a", "ada")
        assert value(await one.scrape(), "sessions_opened_total") == 1
        assert value(await other.scrape(), "sessions_opened_total") == 0
    assert not [family for family in REGISTRY.collect() if family.name.startswith("emceepee")]


async def test_with_a_thousand_sessions_nobody_waits_for_a_monitor() -> None:
    async with open_world(Server("raw", **raw(), start="lazy")) as world:
        for number in range(1000):
            await world.manager.ensure(f"session-{number}", "ada")
        for number in range(2000):
            named = f"server {number % 90}", f"tool {number}"
            world.manager.journal.note(
                facts.CallSettled, "s", "c", *named, TaskState.COMPLETED, False, number, None
            )
        with steps_measured() as longest:
            values = await world.scrape()
        assert value(values, "sessions") == 1000
        assert value(values, "backends", server="raw", state="not_connected") == 1000
        assert longest() < SLOW_STEP_MS / 1000


async def test_others_run_between_two_sessions_that_are_looked_at() -> None:
    async with open_world() as world, trio.open_nursery() as nursery:
        for number in range(100):
            await world.manager.ensure(f"session-{number}", "ada")
        steps = 0

        async def other() -> None:
            nonlocal steps
            while True:
                await trio.lowlevel.checkpoint()
                steps += 1

        nursery.start_soon(other)
        assert (await standing(world.manager, Labels())).sessions == 100
        assert steps > 50
        nursery.cancel_scope.cancel("seen")


def test_a_daemon_answers_its_operator_and_its_monitor(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    monitor = {"token": "m0nitor", "metrics": True}
    config.write_text(json.dumps({"http": {"tokens": {"ada": "s3cret", "prometheus": monitor}}}))
    with serve(tmp_path, "--config", str(config), EMCEEPEE_TOKEN="operator") as daemon:
        url = daemon.url.replace("/mcp", "/metrics")

        def ask(token: str) -> httpx.Response:
            return httpx.get(url, headers={"Authorization": f"Bearer {token}"})

        assert httpx.get(url).status_code == 401
        refused = ask("s3cret")
        assert refused.status_code == 403
        assert "metrics: true" in refused.json()["error"]["message"]
        for token in ("operator", "m0nitor"):
            answer = ask(token)
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            values = read(answer.text)
            assert value(values, "sessions") == 0
            assert values["process_open_fds", frozenset()] > 0
            assert [key for key in values if key[0] == "emceepee_build_info"]


def test_what_the_documentation_asks_for_is_there() -> None:
    page = Path(__file__).parents[3] / "docs" / "howto" / "observability.rst"
    known = {family.full_name for family in reference()}
    asked = set(re.findall(r"emceepee_[a-z_]+", page.read_text("utf-8")))
    assert {re.sub("_(count|bucket|sum)$", "", name) for name in asked} < known


async def test_what_is_there_is_documented() -> None:
    async with open_world(Server("raw", **raw())) as world:
        session = await world.manager.ensure("a", "ada")
        await world.call(session, "echo", args={"text": "hello"})
        text, _ = await world.metrics.text("")
        families = re.findall(r"^# HELP (emceepee_\S+) (.+)$", text.decode(), re.MULTILINE)
        documented = {family.full_name: family.what for family in reference()}
        assert dict(families) == documented


def test_what_readers_dropped_is_told_once_for_each() -> None:
    journal = Journal()

    def fails(fact: facts.Fact) -> None:
        raise ValueError

    def room() -> int:
        return 5

    journal.add(Reader("timeline", fails, (facts.SessionOpened,), room))
    journal.add(Reader("timeline", fails, (facts.SessionEnded,), room))
    journal.note(facts.SessionOpened, "s", "ada")
    journal.note(facts.SessionEnded, "s", "idle")
    (family,) = (
        each
        for each in of_daemon(journal, SlowSteps(), 0, "1")
        if each.name == "facts_dropped_total"
    )
    assert family.values == {("timeline",): 7}
