from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from echo_app import App
from emceepee_trio.serving.asgi import Receive, Scope, Send
from malformed import CASES, asked_h11, asked_llhttp
from raw_http import GUARD, Served, serving

SECOND = b"GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
"""What a proxy that has read the first request in another way takes for a part of it."""


def test_others_say_to_each_what_the_documentation_says() -> None:
    assert len(CASES) >= 60
    assert len({case.sent for case in CASES}) == len(CASES)
    wrong = {
        case.what: said
        for case in CASES
        if (said := (asked_h11(case.sent), asked_llhttp(case.sent))) != (case.h11, case.llhttp)
    }
    assert wrong == {}


async def test_a_request_is_taken_as_one_or_refused_with_all_that_is_behind_it() -> None:
    """In one piece, and in two that are cut in the middle of it."""
    app = App()
    asked: list[str] = []

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["path"])
        await app(scope, receive, send)

    wrong = []
    async with serving(watched) as served:
        for case in CASES:
            for pieces in (1, 2):
                asked.clear()
                said = await _said(served, case.sent, pieces)
                if case.ours != 200:
                    right = said == [case.ours] and "/second" not in asked
                else:
                    right = said == [200, 200] and asked == ["/", "/second"]
                if not right:
                    wrong.append((case.what, pieces, said, asked.copy()))
    assert wrong == []


async def _said(served: Served, sent: bytes, pieces: int) -> list[int]:
    """The status of each answer."""
    sent += SECOND
    statuses = []
    async with served.peer() as peer:
        middle = len(sent) // 2 if pieces == 2 else 0
        try:
            if middle:
                await peer.send(sent[:middle])
                await wait_all_tasks_blocked(0.001)  # it has been read
            await peer.send(sent[middle:])
        except trio.BrokenResourceError:
            pass  # enough was said
        with trio.fail_after(GUARD):
            while peer.came or await peer.more():
                statuses.append((await peer.answer()).status)
    return statuses
