"""The JSON behind the page of a running daemon."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ...model.wire import loads
from ..common.options import HOST, default_port
from ..common.remote import NoAnswer, RemoteDaemon, body_of

JSON = {"Accept": "application/json", "Content-Type": "application/json"}


class RefusedByDaemon(Exception):
    """It will not do that; says why, each problem a line."""

    def __init__(self, why: str, outcome: object = None) -> None:
        super().__init__(why)
        self.outcome = outcome
        """What has become of it instead, if the daemon says so."""


@attrs.frozen
class Api:
    _daemon: RemoteDaemon

    @classmethod
    def of(cls, options: argparse.Namespace) -> Api:
        """
        Raises:
            NoAnswer: its token cannot be had.
        """
        url = options.url or f"http://{HOST}:{default_port()}"
        return cls(RemoteDaemon.find(url, options.state_dir))

    def get(self, path: str, key: str) -> dict[str, Any]:
        """What is there, in which there is *key*.

        Raises:
            NoAnswer, RefusedByDaemon: nothing is.
        """
        return self._asked("GET", path, None, key)

    def post(self, path: str, body: Mapping[str, Any]) -> str:
        """What was done, in a sentence.

        Raises:
            NoAnswer, RefusedByDaemon: nothing was.
        """
        return str(self._asked("POST", path, body, "done")["done"])

    def _asked(
        self, method: str, path: str, body: Mapping[str, Any] | None, key: str
    ) -> dict[str, Any]:
        with self._daemon.request(method, f"/api{path}", JSON, body) as response:
            content = body_of(response)
        try:
            said = loads(content.decode())
        except (ValueError, RecursionError):
            raise self._daemon.stranger(response) from None
        if not isinstance(said, dict):
            raise self._daemon.stranger(response)
        if response.status == 200 and key in said:
            return said
        error = said.get("error")
        if not isinstance(error, dict) or "message" not in error:
            raise self._daemon.stranger(response)
        details = error.get("details")
        problems = details.get("problems") if isinstance(details, dict) else None
        lines = problems if isinstance(problems, list) and problems else [error["message"]]
        outcome = details.get("outcome") if isinstance(details, dict) else None
        raise RefusedByDaemon("\n".join(map(str, lines)), outcome)


def chosen(wanted: str, among: Iterable[Mapping[str, Any]], key: str, what: str) -> dict[str, Any]:
    """The one whose *key* is what is *wanted*, or begins or ends with it.

    Raises:
        RefusedByDaemon: there is none, or are several.
    """
    all_ = list(among)
    found = [each for each in all_ if each.get(key) == wanted]
    ends = (str.startswith, str.endswith)
    found = found or [
        each for each in all_ if any(end(str(each.get(key)), wanted.upper()) for end in ends)
    ]
    if len(found) == 1:
        return dict(found[0])
    if found:
        raise RefusedByDaemon(f"{wanted!r} is part of the ids of {len(found)} {what}s; give more")
    there = ", ".join(str(each.get(key)) for each in all_[:20]) or "none"
    raise RefusedByDaemon(f"no {what} {wanted!r}; there are: {there}")


__all__ = ["Api", "NoAnswer", "RefusedByDaemon", "chosen"]
