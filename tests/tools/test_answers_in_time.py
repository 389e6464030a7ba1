"""No request is held longer than its client waits, whatever it asks for."""

from __future__ import annotations

import pytest

from emceepee_client import Open
from emceepee_trio.config import Limits
from emceepee_trio.tools.common.clients import CLIENTS, STRANGER, KnownClient, known
from fake_backends import Journal, raw
from like import Like

QUICK = {"answer_ms": 300}


async def test_a_slow_call_becomes_a_task_in_time(connect_as_either: Open) -> None:
    async with connect_as_either({"raw": raw()}, limits=QUICK) as emceepee:
        for timeout in ({}, {"timeout_ms": 3_600_000}):
            answer = await emceepee.execute("raw", "never", **timeout)
            assert answer.texts[0] == (
                f"Tool call exceeded timeout (300ms). Promoted to task {answer.task_id}. "
                "Use get_task_result to retrieve the result when ready. It goes on; no answer is "
                "waited for longer than 300 ms (limits.answer_ms)."
            )
        answer = await emceepee.execute("raw", "never", timeout_ms=10)
        assert answer.texts[0].endswith("when ready.")


async def test_so_does_a_wait_for_its_result(connect: Open, journal: Journal) -> None:
    done = journal.path.parent / "done"
    async with connect({"raw": raw()}, limits=QUICK) as emceepee:
        await emceepee.connected("raw")
        task_id = await emceepee.start_task("raw", "slow", {"file": str(done)})
        for timeout in ({}, {"timeout_ms": 3_600_000}):
            error = await emceepee.fails("get_task_result", task_id=task_id, **timeout)
            assert error["code"] == "TOOL_ERR_TIMEOUT"
            assert error["message"] == (
                f"task {task_id} is still working after 300 ms; it goes on. await_activity tells "
                "when it is done; no answer is waited for longer than 300 ms (limits.answer_ms)"
            )
        done.touch()
        await emceepee.task_over(task_id)
        assert (await emceepee.call("get_task_result", task_id=task_id)).text == "the file is there"


async def test_so_does_a_wait_for_anything(connect: Open) -> None:
    async with connect(limits=QUICK) as emceepee:
        for timeout in ({}, {"timeout_ms": 900_000}):
            said = await emceepee.says("await_activity", **timeout)
            assert said["triggers"] == [{"type": "timeout"}]
            assert said["waited_ms"] == 300
            assert said["note"] == Like(
                "no answer is waited for longer than 300 ms .*; .* goes on.*"
            )
        said = await emceepee.says("await_activity", timeout_ms=10)
        assert said["triggers"] == [{"type": "timeout"}]
        assert not {"waited_ms", "note"} & said.keys()


async def test_so_does_a_request_that_is_no_call(connect: Open) -> None:
    async with connect({"raw": raw("--mute", "prompts/get")}, limits=QUICK) as emceepee:
        error = await emceepee.fails("get_prompt", server="raw", name="greet")
        assert error["message"] == Like(r".*within 300 ms \(limits.answer_ms\).*")


def test_most_clients_give_up_after_a_minute() -> None:
    assert STRANGER.answer_ms(Limits()) == known("tests").answer_ms(Limits()) == 45_000
    assert STRANGER.answer_ms(Limits(answer_ms=10_000)) == 10_000


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_known_client_is_held_as_long_as_it_was_seen_to_wait(client: KnownClient) -> None:
    assert known(client.name) is client
    assert client.seen
    assert client.answer_ms(Limits()) == client.patience_ms > 45_000
    assert client.answer_ms(Limits(answer_ms=3_600_000)) == 3_600_000
