"""A question ends the wait of the call that it is of: who waits is who has to answer."""

from __future__ import annotations

import json

import trio

from emceepee_client import Answer, Emceepee, Open
from fake_backends import Journal, demo, raw
from http_server import HttpServer, open_http_server
from like import ULID, Like


async def answer_it(emceepee: Emceepee, name: str = "Ada") -> None:
    question = await emceepee.question()
    await emceepee.says(
        "respond_to_elicitation",
        request_id=question["requestId"],
        action="accept",
        content={"name": name},
    )


def asks(answer: Answer, *, unsure: bool = False) -> str:
    """The id of the question for which a call was promoted."""
    said = answer.texts[0]
    doubt = "; it does not say for which call" if unsure else ""
    assert said == Like(
        rf"Promoted to task {answer.task_id}: server raw asks \(\w+{doubt}\); answer "
        r"with respond_to_elicitation, then get_task_result\."
    )
    return said.partition("asks (")[2][:26]


async def test_a_question_promotes_its_call_at_once(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        answer = await emceepee.execute("raw", "string_id_question", timeout_ms=3_600_000)
        request_id = asks(answer)
        assert answer.result["isError"] is False
        assert (await emceepee.question())["requestId"] == request_id
        await answer_it(emceepee)
        result = await emceepee.call("get_task_result", task_id=answer.task_id)
        assert json.loads(result.text) == {"action": "accept", "content": {"name": "Ada"}}


async def test_so_does_a_question_to_the_model(connect: Open, its_era: tuple[str, ...]) -> None:
    async with connect({"raw": raw(*its_era)}) as emceepee:
        answer = await emceepee.execute("raw", "two_questions", timeout_ms=3_600_000)
        assert answer.texts[0] == Like(
            r"Promoted to .*: server raw asks \(.*\); answer with respond_to_.*, then get_task_.*"
        )
        waiting = await emceepee.fails("get_task_result", task_id=answer.task_id)
        # Of a server that speaks the handshake era the second question may come a moment later.
        assert waiting["code"] == "TOOL_ERR_TIMEOUT"


async def test_a_wait_for_a_result_ends_for_a_question(
    connect_as_either: Open, its_era: tuple[str, ...]
) -> None:
    async with connect_as_either({"raw": raw(*its_era)}) as emceepee:
        task_id = await emceepee.start_task("raw", "string_id_question")
        for _ in range(2):
            error = await emceepee.fails("get_task_result", task_id=task_id)
            assert error == {
                "code": "TOOL_ERR_TIMEOUT",
                "message": Like(
                    rf"task {task_id} waits for you: server raw asks \(\w+\); answer "
                    "with respond_to_elicitation, then get_task_result"
                ),
                "details": {"task": error["details"]["task"]},
            }
        assert error["details"]["task"]["status"] == "working"
        await answer_it(emceepee)
        result = await emceepee.call("get_task_result", task_id=task_id)
        assert json.loads(result.text)["content"] == {"name": "Ada"}


async def test_a_question_of_another_call_ends_no_wait(connect: Open, journal: Journal) -> None:
    """A modern server asks in answer to a call, so it is known which one it is of."""
    done = journal.path.parent / "done"
    servers = {
        "raw": raw("--discover", "modern", *journal.flags),
        "other": raw(*journal.flags),
    }
    answers: dict[str, Answer] = {}
    async with connect(servers) as emceepee, trio.open_nursery() as nursery:

        async def wait(server: str) -> None:
            answers[server] = await emceepee.execute(server, "slow", {"file": str(done)})

        for server in servers:
            nursery.start_soon(wait, server)
        await journal.wait_for_marker("slow started", 2)
        asks(await emceepee.execute("raw", "string_id_question"))
        await answer_it(emceepee)
        assert answers == {}
        done.touch()
    assert {answer.text for answer in answers.values()} == {"the file is there"}


async def test_over_http_a_question_comes_with_the_answer_it_is_for(connect: Open) -> None:
    answers: list[Answer] = []
    async with (
        open_http_server(HttpServer()) as server,
        connect({"raw": {"url": server.url, "era": "handshake"}}) as emceepee,
        trio.open_nursery() as nursery,
    ):

        async def wait() -> None:
            answers.append(await emceepee.execute("raw", "slow"))

        nursery.start_soon(wait)
        await server.wait_for("tools/call")
        answer = await emceepee.execute("raw", "ask")
        asks(answer)
        await answer_it(emceepee)
        result = await emceepee.call("get_task_result", task_id=answer.task_id)
        assert json.loads(result.text)["result"]["content"] == {"name": "Ada"}
        assert not answers
        server.release.set()
    assert [answer.text for answer in answers] == ["{}"]


async def test_where_no_task_has_room_a_question_ends_no_wait(connect: Open) -> None:
    async with connect({"raw": raw()}, limits={"tasks": 1}) as emceepee:
        task_id = await emceepee.start_task("raw", "never")
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                answer = await emceepee.execute("raw", "string_id_question")
                assert json.loads(answer.text)["action"] == "accept"

            nursery.start_soon(wait)
            await answer_it(emceepee)
        await emceepee.says("cancel_task", task_id=task_id)


async def test_a_task_says_which_question_ran_out(connect: Open, its_era: tuple[str, ...]) -> None:
    limits = {"question_timeout_ms": 1000}
    async with connect({"raw": raw(*its_era)}, limits=limits) as emceepee:
        answer = await emceepee.execute("raw", "strict_question")
        request_id = asks(answer)
        task = await emceepee.task_over(answer.task_id)
        assert task["status"] == "failed"
        said = Like(
            f"its question {request_id} of server raw was not answered within 1000 ms "
            r"\(limits.question_timeout_ms\); then server 'raw' answered tools/call with an error: "
            r"Invalid or expired requestState\. Call again, .*"
        )
        assert task["error"] == said
        error = await emceepee.fails("get_task_result", task_id=answer.task_id)
        assert error == {
            "code": "TOOL_ERR_EXECUTION_FAILED",
            "message": said,
            "details": {"code": -32602, "message": "Invalid or expired requestState"},
        }


async def test_so_does_one_whose_server_takes_it_for_an_answer(connect: Open) -> None:
    """The user has not cancelled anything, whatever the server says."""
    limits = {"question_timeout_ms": 1000}
    async with connect({"demo": {**demo(), "era": "modern"}}, limits=limits) as emceepee:
        answer = await emceepee.execute("demo", "ask_name")
        assert (await emceepee.task_over(answer.task_id))["status"] == "completed"
        result = await emceepee.call("get_task_result", task_id=answer.task_id)
        first, note = result.texts
        assert first == "You cancelled."
        assert json.loads(note) == {
            "unanswered_question": {"request_id": ULID, "server": "demo", "after_ms": 1000}
        }


async def test_a_task_that_expires_says_what_it_waited_for(connect: Open) -> None:
    async with connect({"raw": raw()}) as emceepee:
        answer = await emceepee.execute("raw", "string_id_question", ttl_ms=100)
        request_id = asks(answer)
        await emceepee.task_over(answer.task_id)
        error = await emceepee.fails("get_task_result", task_id=answer.task_id)
        assert error["message"] == Like(
            f"task .* expired after 100 ms; its question {request_id} was not answered until then"
        )
