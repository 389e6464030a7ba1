"""Whether servers work: each is started, asked for its tools, and ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from ...backend.backend import Backend
from ...backend.catalogue.shelf import TELLING
from ...backend.children.footprint import footprints
from ...config import Config, Server
from ...errors import ToolError, internal
from ...model.text.redact import HIDDEN, redact_text
from ...tools.common.asking import entries_of
from ...waits.firewall import Firewall, begin
from .output import CannotWrite, megabytes
from .own import Own, open_own


async def _cost(backend: Backend) -> str:
    """What its program has in memory, which is that of each session, or of all together."""
    if backend.process is None:
        return ""
    found = await footprints([backend.process.pid])
    of = "session" if backend.server.scope == "session" else "principal"
    return "".join(f", {megabytes(each.resident)} for each {of}" for each in found.values())


def _without_secrets(why: str, server: Server) -> str:
    """What is shown to others for their help tells no values, even if the server repeats them."""
    values = [*dict(server.env).values(), *dict(server.headers).values()]
    for value in sorted(filter(None, values), key=len, reverse=True):
        if len(value) >= TELLING:
            why = why.replace(value, HIDDEN)
    return redact_text(why)


async def try_all(config: Config, heard: Callable[[str, bool, str], None]) -> bool:
    """Whether all of them do, but for those that are disabled.

    Of each its name, whether it does, and what it has or why it does not, is *heard* at once.
    """
    failed: list[str] = []

    async def one(own: Own, backend: Backend) -> None:
        name, start = backend.server.name, trio.current_time()
        try:
            await backend.connection()
            count = len(await entries_of(own.request, backend, "tools"))
        except ToolError as error:
            fail(name, _without_secrets(backend.last_error or error.message, backend.server))
        else:
            tools = f"{count} tool{'s' * (count != 1)}"
            took = f"after {trio.current_time() - start:.1f} s"
            heard(name, True, f"{tools}, {took}{await _cost(backend)}")

    def fail(name: str, why: str) -> None:
        failed.append(name)
        heard(name, False, f"does not work: {why}")

    def crashed(name: str, log_id: str) -> None:
        fail(name, internal(log_id))

    async with open_own(config) as own:
        backends = [b for b in own.session.backends.values() if not b.server.disabled]
        async with trio.open_nursery() as nursery:
            for backend in backends:
                failing = partial(crashed, backend.server.name)
                wall = Firewall("check_crashed", failing, (CannotWrite,))
                begin(nursery, wall, one, own, backend)
    return not failed
