"""The timeline of what a client really did: through a real daemon, with a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import httpx  # noqa: ASYNC127 - the client that shares no code with us
import trio

from emceepee_lines import Lines, open_pipes
from fake_backends import Journal, raw, until
from served import serve

GUARD = 120

Json = dict[str, Any]


@attrs.define(eq=False)
class Onlooker:
    """Somebody who looks at the page of a daemon."""

    http: httpx.Client

    def sees(self, path: str, **query: str) -> Any:
        answer = self.http.get(f"/api{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def session(self) -> Json:
        (found,) = self.sees("/sessions")["sessions"]
        said: Json = found
        return said

    def timeline(self, **query: str) -> Json:
        said: Json = self.sees(f"/sessions/{self.session()['name']}/timeline", **query)
        return said

    def row(self, kind: str, name: str) -> Json:
        """The last one."""
        rows: list[Json] = self.timeline()["rows"]
        return [row for row in rows if (row["kind"], row["name"]) == (kind, name)][-1]


def phases(row: Json) -> list[str]:
    return [span["phase"] for span in row["spans"]]


def facts(row: Json) -> list[str]:
    return [fact["fact"] for fact in row["facts"]]


async def test_a_session_is_shown_as_it_was(tmp_path: Path) -> None:
    journal, file = Journal(tmp_path / "journal"), tmp_path / "go on"
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"raw": raw(*journal.flags)}}), "utf-8")
    with (
        trio.fail_after(GUARD),
        serve(tmp_path, "--config", str(config), "--no-auth") as daemon,
        httpx.Client(base_url=daemon.url.removesuffix("/mcp")) as http,
    ):
        onlooker = Onlooker(http)
        bridge = "stdio", "--connect", daemon.url, "--state-dir", str(tmp_path)
        async with open_pipes(tmp_path / "bridge.log", *bridge) as lines:
            await lines.initialize()
            assert onlooker.sees("/sessions") == {
                "sessions": [],
                "more": 0,
                "idle": 1,
                "keeps": True,
            }
            await a_call(lines, onlooker)
            await a_slow_one(lines, onlooker, file)
            await one_that_asks(lines, onlooker)
            await one_that_is_cancelled(lines, onlooker, journal)
            await one_whose_server_is_lost(lines, onlooker)
            look_around(onlooker)
        await until(lambda: onlooker.session()["ended_at"])
        assert onlooker.timeline()["ledger"]["tokens"] > 0
        assert onlooker.row("connection", onlooker.timeline()["rows"][0]["name"])["ended_at"]


async def a_call(lines: Lines, onlooker: Onlooker) -> None:
    said = await lines.execute("raw", "echo", {"text": "hello"})
    row = onlooker.row("call", "echo")
    assert (row["server"], row["outcome"], row["told_bytes"]) == (
        "raw",
        "completed",
        len(said.texts[0]),
    )
    assert facts(row) == ["call_begun", "call_sent", "call_settled", "result_told"]
    assert phases(row)[-1] == "server"
    link = onlooker.row("connection", f"program {await lines.pid('raw')}")
    assert link["waits_for"] == "up"


async def a_slow_one(lines: Lines, onlooker: Onlooker, file: Path) -> None:
    said = await lines.execute("raw", "slow", {"file": str(file)}, timeout_ms=0)
    task = json.loads(said.texts[1])["proxy_task"]["task_id"]
    row = onlooker.row("call", "slow")
    assert (row["id"], row["outcome"]) == (task, "under way")
    assert "call_promoted" in facts(row)
    await until(lambda: onlooker.row("call", "slow")["waits_for"] == "server")
    file.touch()  # noqa: ASYNC240 - a file of this test
    await lines.call("result", "get_task_result", task_id=task)
    row = onlooker.row("call", "slow")
    assert row["outcome"] == "completed"
    assert facts(row)[-4:] == ["call_settled", "result_kept", "result_read", "result_told"]


async def one_that_asks(lines: Lines, onlooker: Onlooker) -> None:
    said = await lines.execute("raw", "string_id_question")
    task = json.loads(said.texts[1])["proxy_task"]["task_id"]
    assert onlooker.row("call", "string_id_question")["waits_for"] == "question"
    asked = onlooker.row("question", "elicitation")
    assert asked["waits_for"] == "tools"
    answer = {"request_id": asked["id"], "action": "accept", "content": {"name": "Ada"}}
    await lines.call("answer", "respond_to_elicitation", **answer)
    await lines.call("asked", "get_task_result", task_id=task)
    row = onlooker.row("call", "string_id_question")
    assert row["outcome"] == "completed"
    assert phases(row)[-3:] == ["server", "question", "server"]
    assert onlooker.row("question", "elicitation")["outcome"] == "accepted"


async def one_that_is_cancelled(lines: Lines, onlooker: Onlooker, journal: Journal) -> None:
    said = await lines.execute("raw", "never", timeout_ms=0)
    await journal.wait_for_marker("never started")
    task = json.loads(said.texts[1])["proxy_task"]["task_id"]
    await lines.call("cancel", "cancel_task", task_id=task)
    assert onlooker.row("call", "never")["outcome"] == "cancelled"


async def one_whose_server_is_lost(lines: Lines, onlooker: Onlooker) -> None:
    before = f"program {await lines.pid('raw')}"
    await lines.execute("raw", "exit")
    assert onlooker.row("call", "exit")["outcome"] == "failed"
    lost = onlooker.row("connection", before)
    assert lost["outcome"] == "lost"
    assert "child_ended" in facts(lost)
    await lines.execute("raw", "unicode")
    assert phases(onlooker.row("call", "unicode"))[0] == "reconnection"


def look_around(onlooker: Onlooker) -> None:
    everything = onlooker.timeline()
    tools = [row["name"] for row in everything["rows"] if row["kind"] == "call"]
    assert tools == ["echo", "slow", "string_id_question", "never", "exit", "unicode"]
    chosen = onlooker.timeline(outcome="cancelled")
    assert [row["name"] for row in chosen["rows"]] == ["never"]
    later = onlooker.timeline(**{"from": str(everything["whole"]["to_s"] - 0.001)})
    assert "echo" not in [row["name"] for row in later["rows"]]
    assert [line["server"] for line in everything["ledger"]["servers"]] == ["raw"]
    page = onlooker.http.get(
        f"/sessions/{onlooker.session()['name']}", headers={"Accept": "text/html"}
    )
    assert page.status_code == 200
    for name in (*tools, "elicitation"):
        assert f">{name}</span>" in page.text
