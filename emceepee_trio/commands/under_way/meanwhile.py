"""What a server asks in the middle of a call from the shell, of whoever is there or elsewhere."""

from __future__ import annotations

import select
import sys
import time
from typing import Any

import attrs

from ..common.options import HOST, default_port
from ..common.output import complain, say
from ..common.shell import Asked, Unavailable, answer, error_of, in_words
from ..common.terminal import Ticker
from .asking import LeftOpen, ask
from .person import answered, is_here, is_sampling, show

LOOK = 1.0
"""Seconds between two looks whether somebody else has answered."""


@attrs.define(eq=False)
class Asking:
    """Of one call; each question is told once."""

    _asked: Asked
    _server: str
    _url: str | None
    """Of the daemon, where others can answer, too."""
    _ticker: Ticker
    _told: set[str] = attrs.field(factory=set, init=False)

    async def look(self) -> float:
        """See what is open; for how many seconds a person was asked.

        Raises:
            Unavailable: nobody can answer.
        """
        began, was_asked = time.monotonic(), False
        for question in (open_ := await self._open()):
            if question["requestId"] in self._told:
                continue
            self._told.add(question["requestId"])
            if not is_here():
                self._tell(question)
                continue
            was_asked = True
            with self._ticker.paused():
                await self._put(question)
        if open_ and not was_asked:
            await self._asked.pause()  # what is asked for a result now says at once that it waits
        return time.monotonic() - began if was_asked else 0.0

    async def _open(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        kinds = {"get_elicitations": "elicitations", "get_sampling_requests": "sampling_requests"}
        for tool, key in kinds.items():
            found += answer(await self._asked.call(tool, {"server": self._server})).get(key, ())
        return found

    def _tell(self, question: dict[str, Any]) -> None:
        """To whom it may concern, elsewhere."""
        what = question.get("message") or "for a completion by a model"
        said = f"server {self._server!r} asks: {what}"
        if self._url is None:
            raise Unavailable(
                f"{said}; nobody is here to answer. In a terminal you are asked, and with --url "
                "`emceepee answer` can do it elsewhere"
            )
        with self._ticker.paused():
            complain(f"emceepee call: {said}; {self._elsewhere(question)} answers it")

    def _elsewhere(self, question: dict[str, Any]) -> str:
        is_default = self._url == f"http://{HOST}:{default_port()}"
        where = "" if is_default else f"--url {self._url} "  # in front: the answer goes behind it
        return f"`emceepee answer {where}{question['requestId'][-8:]}`"

    async def _put(self, question: dict[str, Any]) -> None:
        """To the person here, unless somebody else comes first."""
        show(question)
        try:
            if self._url is not None and not await self._is_wanted_here(question):
                say("Somebody else has answered, or it is not asked any more.")
                return
            while True:
                said = await self._asked.beside(lambda: answered(question))
                result = await self._asked.call(*_as_tool(question, said))
                if (error := error_of(result)) is None:
                    return
                say(f"\n{in_words(error)}\n")
                if question["requestId"] not in {each["requestId"] for each in await self._open()}:
                    return
        except LeftOpen:
            if self._url is None:
                raise Unavailable("it was not answered, so the call is cancelled") from None
            self._tell(question)

    async def _is_wanted_here(self, question: dict[str, Any]) -> bool:
        say(f"Press Enter to answer it here; {self._elsewhere(question)} does it elsewhere.")
        while not await self._asked.beside(
            lambda: bool(select.select([sys.stdin], [], [], LOOK)[0])
        ):
            if question["requestId"] not in {each["requestId"] for each in await self._open()}:
                return False
        ask("")
        return True


def _as_tool(question: dict[str, Any], said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The tool that answers it, and its arguments."""
    named = {"request_id": question["requestId"]}
    if not is_sampling(question):
        return "respond_to_elicitation", named | said
    given = {key: said[key] for key in ("role", "content", "model")}
    return "respond_to_sampling", named | given | {"stop_reason": said["stopReason"]}
