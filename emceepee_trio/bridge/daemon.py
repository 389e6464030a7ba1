"""A daemon that may be away for a while: it is restarted, a connection breaks.

What it cannot have taken waits until it is there; a token that it does not want any more is looked
up again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from .http import Address, DaemonHttp, Gone, Interrupt, Response

PATIENCE = 15.0
"""Seconds that the daemon may be away before a request fails; a service is back in less."""
PAUSES = (0.1, 0.2, 0.5, 1.0)
"""Seconds between tries; the last goes on."""


class Unanswerable(Exception):
    """There is no answer, and will be none; says why, and what to do."""

    def __init__(self, why: str, *, may_have_run: bool = False) -> None:
        super().__init__(why)
        self.may_have_run = may_have_run


class FarDaemon:
    def __init__(self, address: Address, find_token: Callable[[], str | None]) -> None:
        self.address = address
        self.changed = threading.Condition()
        """Of whether it is away, and of what else those who wait for it go by."""
        self.is_away = False
        """Nobody is there who would take anything."""
        self.ended = threading.Event()
        """Set when nobody waits for it any more."""
        self._http = DaemonHttp(address)
        self._find_token = find_token  # asked again when the daemon wants another one
        self._token = find_token()

    @contextmanager
    def request(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        message: Mapping[str, Any] | None = None,
        cut: Interrupt | None = None,
    ) -> Generator[Response]:
        """The response of a daemon that is there, waiting for one if need be.

        Raises:
            Gone: it broke off; in the block, too.
            Unanswerable: nobody is there, or it wants another token.
        """
        body = None if message is None else json.dumps(message).encode()
        until, pauses, is_new_token = time.monotonic() + PATIENCE, iter(PAUSES), False
        while True:
            try:
                with self.once(method, target, headers, body, cut) as response:
                    self.is_away = False
                    if response.status == 401 and is_new_token:
                        raise Unanswerable(
                            f"the daemon at {self.address} wants another token; set "
                            "EMCEEPEE_TOKEN, or name its --state-dir"
                        )
                    is_away = response.status == 503 and time.monotonic() < until
                    if response.status != 401 and not is_away:
                        yield response
                        return
                if not is_away:
                    self._token, is_new_token = self._find_token(), True
                    continue
            except Gone as gone:
                if gone.was_sent:
                    raise
                with self.changed:
                    self.is_away = True
                    self.changed.notify_all()
                if time.monotonic() > until:
                    raise Unanswerable(
                        f"no daemon answers at {self.address} ({gone}); `emceepee serve` starts one"
                    ) from None
            if self.ended.wait(next(pauses, PAUSES[-1])):
                raise Unanswerable("nobody waits for it any more")

    @contextmanager
    def once(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        cut: Interrupt | None = None,
    ) -> Generator[Response]:
        if self._token is not None:
            headers = {"Authorization": f"Bearer {self._token}", **headers}
        with self._http.request(method, target, headers, body, cut) as response:
            yield response
