"""What a real collector is sent by a real daemon, and what happens where there is none."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx  # noqa: ASYNC127 - the client that shares no code with us
import pytest
import trio
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from collector import collecting
from emceepee_client import open_emceepee
from emceepee_trio import telemetry
from emceepee_trio.config import Telemetry
from emceepee_trio.telemetry import export
from emceepee_trio.telemetry.export import NoExporter, open_telemetry
from emceepee_trio.tracing import TracedRequest
from fake_backends import Journal, raw
from served import serve

THEIRS = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "execute_tool",
}
META = "io.modelcontextprotocol/"
STAMP = {
    f"{META}protocolVersion": "2026-07-28",
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": {"name": "test", "version": "0"},
}


def configured(folder: Path, *flags: Any, **settings: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": {"raw": raw(*flags)}, "telemetry": settings}))
    return path


def test_a_daemon_sends_its_spans_and_what_it_measures(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "execute_tool",
            "arguments": {"server": "raw", "tool": "echo", "args": {"text": "hello"}},
            "_meta": {**STAMP, "traceparent": THEIRS},
        },
    }
    with collecting() as collector:
        settings = {"traces": True, "metrics": True, "endpoint": collector.url}
        config = configured(tmp_path, *journal.flags, **settings)
        environment = {"OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=ada", "OTEL_SERVICE_NAME": "ours"}
        with serve(tmp_path, "--config", str(config), "--no-auth", **environment) as daemon:
            answer = httpx.post(daemon.url, json=call, headers=HEADERS, timeout=60)
            assert answer.status_code == 200, answer.text
        # It has said all before it ended.
        served, sent = (collector.spans[f"tools/call {n}"] for n in ("execute_tool", "echo"))
    assert collector.services == {"ours"}
    assert {each["x-tenant"] for each in collector.headers} == {"ada"}
    _, trace, parent, _ = THEIRS.split("-")
    assert served.trace_id.hex() == sent.trace_id.hex() == trace
    assert (served.parent_span_id.hex(), sent.parent_span_id) == (parent, served.span_id)
    (reached,) = journal.of("tools/call")
    assert sent.span_id.hex() in reached["params"]["_meta"]["traceparent"]
    kinds = ("server", "client")
    assert collector.measured == {f"mcp.{kind}.operation.duration" for kind in kinds}


async def test_over_stdio_it_is_the_same(tmp_path: Path) -> None:
    with collecting() as collector:
        settings = {"traces": True, "endpoint": collector.url}
        async with open_emceepee(tmp_path, {"raw": raw()}, telemetry=settings) as emceepee:
            await emceepee.execute("raw", "echo", {"text": "hello"})
        span = collector.spans["tools/call execute_tool"]
    assert "pipe" in [a.value.string_value for a in span.attributes if a.key == "network.transport"]
    assert collector.services == {"emceepee"}
    assert not collector.metrics


async def test_one_trace_goes_to_the_server_and_by_its_question_back_to_the_client(
    tmp_path: Path,
) -> None:
    heard: list[Mapping[str, Any]] = []

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        heard.append(params.model_dump(by_alias=True)["_meta"])
        return ElicitResult(action="decline")

    with collecting() as collector:
        settings = {"traces": True, "endpoint": collector.url}
        dialogs = {"elicitation_callback": elicit}
        async with open_emceepee(
            tmp_path, {"raw": raw()}, callbacks=dialogs, telemetry=settings
        ) as emceepee:
            await emceepee.execute("raw", "string_id_question")
    served, sent, asked, put = (
        next(span for span in collector.all_spans if (span.kind, span.name) == of)
        for of in (
            (Span.SPAN_KIND_SERVER, "tools/call execute_tool"),
            (Span.SPAN_KIND_CLIENT, "tools/call string_id_question"),
            (Span.SPAN_KIND_SERVER, "elicitation/create"),
            (Span.SPAN_KIND_CLIENT, "elicitation/create"),
        )
    )
    within = [(each.trace_id, each.parent_span_id) for each in (sent, asked, put)]
    assert within == [(served.trace_id, each.span_id) for each in (served, sent, asked)]
    (meta,) = heard
    assert meta["traceparent"].split("-")[1:3] == [put.trace_id.hex(), put.span_id.hex()]


@pytest.mark.cold
@pytest.mark.once
def test_nothing_of_it_is_imported_where_nobody_wants_it() -> None:
    look = (
        "import sys, emceepee_trio.daemon, emceepee_trio.front.pipes.stdio;"
        "print([m for m in sys.modules if m.startswith(('opentelemetry.sdk', 'opentelemetry.exp',"
        " 'emceepee_trio.telemetry.s', 'requests', 'google'))])"
    )
    said = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True, text=True)
    assert said.stdout == "[]\n"


async def test_it_is_off_unless_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    async with open_telemetry(Telemetry()) as tracing:
        assert tracing is None
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    async with open_telemetry(Telemetry(traces=True, metrics=True)) as tracing:
        assert tracing is None


async def test_who_lacks_the_packages_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "emceepee_trio.telemetry.sdk", raising=False)
    monkeypatch.delattr(telemetry, "sdk", raising=False)
    with pytest.raises(NoExporter, match=r"opentelemetry.* pip install 'emceepee-trio\[otel\]'"):
        async with open_telemetry(Telemetry(traces=True)):
            pass


async def test_a_collector_that_does_not_answer_holds_up_the_end_for_so_long_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(export, "GOODBYE", 0.2)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1")  # then its thread ends, too
    with socket.create_server(("127.0.0.1", 0)) as silent, trio.fail_after(60):
        port = silent.getsockname()[1]
        wanted = Telemetry(traces=True, endpoint=f"http://127.0.0.1:{port}")
        async with open_telemetry(wanted) as tracing:
            assert tracing is not None
            with tracing.answering(TracedRequest("ping", {}, 1, "2025-11-25", "tcp", "session")):
                pass
        assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == [
            "telemetry_lost"
        ]
