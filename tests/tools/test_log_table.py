"""Every event that operators are promised in the log: its level, and whose it is."""

from __future__ import annotations

from emceepee_client import Emceepee, Json, Open, log_lines
from fake_backends import raw

OURS = {"level": "info"}
SESSION = {"level": "info", "session": "default"}
RAW = SESSION | {"server": "raw"}
BROKEN = SESSION | {"server": "broken"}
WARN = {"level": "warn"}

TABLE: dict[str, Json] = {
    "session_created": SESSION,
    "server_connected": RAW,
    "server_reconnect_failed": BROKEN | WARN,
    "server_reconnecting": BROKEN,
    "server_disconnected": RAW,
    "server_removed": BROKEN,
    "server_added": RAW,
    "tool_execution_timeout": RAW,
    "tool_execution_failed": RAW | WARN,
    "task_completed": RAW,
    "task_failed": RAW | WARN,
    "task_cancelled": RAW,
    "task_expired": RAW,
    "elicitation_received": RAW,
    "elicitation_responded": RAW,
    "elicitation_timeout": RAW | WARN,
    "sampling_received": RAW,
    "sampling_responded": RAW,
    "sampling_timeout": RAW | WARN,
    "event_store_eviction": SESSION | WARN,
    "session_destroyed": SESSION,
    "registry_shutdown_start": OURS,
    "registry_shutdown_complete": OURS,
}


async def answer_questions(emceepee: Emceepee) -> None:
    await emceepee.start_task("raw", "string_id_question")
    question = await emceepee.question()
    answer = {"action": "accept", "content": {"name": "Ada"}}
    await emceepee.says("respond_to_elicitation", request_id=question["requestId"], **answer)
    await emceepee.start_task("raw", "sample_question")
    question = await emceepee.question()
    completion = {"content": "hello", "model": "m"}
    await emceepee.says("respond_to_sampling", request_id=question["requestId"], **completion)


async def have_tasks_end_in_every_way(emceepee: Emceepee) -> None:
    for tool in ("echo", "rpc_error"):
        await emceepee.task_over(await emceepee.start_task("raw", tool))
    task = await emceepee.start_task("raw", "never")
    await emceepee.says("cancel_task", task_id=task)
    await emceepee.task_over(await emceepee.start_task("raw", "never", ttl_ms=100))


async def test_everything_that_is_promised_is_logged(connect: Open) -> None:
    lines: list[Json] = []
    broken = raw("--exit-at-once", 3) | {"restart": {"base_delay_ms": 1000}}
    async with connect({"raw": raw(), "broken": broken}) as emceepee:
        await answer_questions(emceepee)
        await have_tasks_end_in_every_way(emceepee)
        await emceepee.fails("execute_tool", server="broken", tool="echo")
        await emceepee.says("remove_server", name="broken")
        await emceepee.says("remove_server", name="raw")
        await emceepee.says("add_server", name="raw", **raw())
    lines += log_lines(emceepee.stderr)
    limits = {"question_timeout_ms": 1000}
    async with connect({"raw": raw()}, limits=limits) as emceepee:
        for tool, kind in (("string_id_question", "elicitation"), ("sample_question", "sampling")):
            await emceepee.start_task("raw", tool)
            await emceepee.event(f"{kind}_expired")
    lines += log_lines(emceepee.stderr)
    async with connect({"raw": raw()}, limits={"events": 10}, context="off") as emceepee:
        await emceepee.execute("raw", "notify_many", {"n": 20, "k": 0})
    lines += log_lines(emceepee.stderr)
    found: dict[str, list[Json]] = {event: [] for event in TABLE}
    for line in lines:
        if line["event"] in TABLE:
            expected = TABLE[line["event"]]
            if {key: line.get(key) for key in expected} == expected:
                found[line["event"]].append(line)
        elif line["level"] in ("warn", "error"):
            raise AssertionError(f"not in the table: {line}")
    assert [event for event, its in found.items() if not its] == []
    assert {line["level"] for line in lines} <= {"debug", "info", "warn"}
    # Whatever is of a server or of a session says of which, every time.
    of_sessions = [
        line for line in lines if line["event"] in TABLE and "registry" not in line["event"]
    ]
    assert {line.get("session") for line in of_sessions} == {"default"}
    for line in of_sessions:
        if "server" in TABLE[line["event"]]:
            assert line["server"] in ("raw", "broken"), line
            assert line["level"] == TABLE[line["event"]]["level"], line
