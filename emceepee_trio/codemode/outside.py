"""The daemon, as the program that runs a script has it: on standard input and output.

It is told the script there, asks for whatever that calls, and says what it logs and what has become
of it. Messages are JSON-RPC, a line each. Knows no sandbox.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .crossing import Unsayable, plain

CHUNK = 64 * 1024
"""Bytes read at once."""
LOG_LINE = 16 * 1024
LOG_BYTES = 1024 * 1024
"""Of a line that is logged, and of all together; what is beyond is counted."""


class SandboxGone(Exception):
    """Killed, while nobody talked to it."""


class Outside:
    """The daemon: what it is told and asked, and what it has answered."""

    def __init__(self) -> None:
        self.most = 0
        """Bytes of a message."""
        self.sandbox: int | None = None
        """A handle of its process: who waits for us must not wait for what is gone."""
        self.lost_lines = self.lost_bytes = 0
        self._heard = bytearray()
        self._answers: dict[int, dict[str, Any]] = {}
        self._logged = 0
        self._printed = ""

    def told(self) -> dict[str, Any]:
        """The next message; this program ends if there will be none."""
        while b"\n" not in self._heard:
            watched = [0] if self.sandbox is None else [0, self.sandbox]
            ready, _, _ = select.select(watched, [], [])
            if 0 not in ready:
                raise SandboxGone
            chunk = os.read(0, CHUNK)
            if not chunk:
                os._exit(0)
            self._heard += chunk
        said, _, rest = self._heard.partition(b"\n")
        self._heard = bytearray(rest)
        message: dict[str, Any] = json.loads(said)
        return message

    def say(self, message: Mapping[str, Any]) -> None:
        """Raises `Unsayable` if it is too long."""
        said = json.dumps({"jsonrpc": "2.0", **message}, allow_nan=False).encode()
        if len(said) > self.most:
            raise Unsayable(
                f"it is {len(said)} bytes of JSON, and no more than {self.most} cross "
                "(limits.message); make it smaller"
            )
        sys.stdout.buffer.write(said + b"\n")
        sys.stdout.buffer.flush()

    def ask(self, number: int, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raises `Unsayable` if an argument cannot cross."""
        self.flush()
        params = {"name": name, "args": plain(args), "kwargs": plain(kwargs)}
        self.say({"id": number + 1, "method": "call", "params": params})

    def answer(self, wanted: Sequence[int]) -> tuple[int, dict[str, Any]]:
        """The next that has come to one of these, as the sandbox takes it."""
        while True:
            for number in wanted:
                if number in self._answers:
                    return number, self._answers.pop(number)
            message = self.told()
            self.answered(message["id"] - 1, result(message))

    def answered(self, number: int, answer: dict[str, Any]) -> None:
        self._answers[number] = answer

    def printed(self, _stream: str, text: str) -> None:
        """In pieces, as they come."""
        *lines, self._printed = (self._printed + text).split("\n")
        for each in lines:
            self.log(each)
        if len(self._printed) > LOG_LINE:
            self.flush()

    def flush(self) -> None:
        if self._printed:
            said, self._printed = self._printed, ""
            self.log(said)

    def log(self, text: str) -> None:
        size = len(text.encode(errors="replace"))
        if self._logged + size > LOG_BYTES:
            self.lost_lines += 1
            self.lost_bytes += size
            return
        kept = text[:LOG_LINE]
        self._logged += len(kept) + 1
        self.lost_bytes += len(text) - len(kept)
        self.say({"method": "log", "params": {"text": kept}})


def result(message: Mapping[str, Any]) -> dict[str, Any]:
    """What has been answered, as the sandbox takes it."""
    if "error" in message:
        return {"exc_type": "RuntimeError", "message": message["error"]["message"]}
    said = message["result"]
    if "text" not in said:
        return {"return_value": said["value"]}
    try:
        return {"return_value": json.loads(said["text"])}
    except (ValueError, RecursionError):
        return {"return_value": said["text"]}
