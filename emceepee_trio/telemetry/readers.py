"""Who reads what is noted, from before the first session until after the last.

A store of facts is one more line of :data:`READERS`. Those that come with something else (metrics,
pages, traces) are added to the journal by that. Knows no session.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from ..config import Config
from ..journal import Journal, Reader
from ..logs import facts as log

OpenReader: TypeAlias = Callable[[Config, Path | None], AbstractAsyncContextManager[Reader | None]]
"""For what a configuration says and with the state directory, if there is one; None: it is not
wanted. What it opens is closed when nothing more is noted."""


@asynccontextmanager
async def open_log(config: Config, state: Path | None) -> AsyncGenerator[Reader]:
    yield Reader("log", log.tell, log.LINES)


READERS: tuple[OpenReader, ...] = (open_log,)


@asynccontextmanager
async def open_journal(config: Config, state: Path | None) -> AsyncGenerator[Journal]:
    """With all of them. Whoever notes lives in this block."""
    journal = Journal()
    async with AsyncExitStack() as stack:
        for open_reader in READERS:
            if (reader := await stack.enter_async_context(open_reader(config, state))) is not None:
                journal.add(reader)
        yield journal
