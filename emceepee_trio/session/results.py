"""What a session keeps of answers that are too long to be shown, until it ends.

Each has an id. The oldest makes room for a new one beyond ``results.bytes``, and each is forgotten
after ``results.keep_ms``; of ids that are gone it is known for a while that they were. What is
kept, and what is shown of it, is decided in `tools`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import attrs
import trio

from .. import config
from ..config.bounds import MAX_RESULTS, MAX_RESULTS_GONE
from ..errors import NotFound
from ..waits.disk import on_disk
from ..waits.firewall import Firewall, begin
from .kept import PIECE, Draft, Kept, ResultFolder, ResultFolders

REMOVING = 5.0
"""Seconds that a session that has ended waits for a disk to remove what it had kept."""

Why: TypeAlias = Literal["evicted", "expired"]


@attrs.define(eq=False)
class Results:
    """What one session keeps."""

    settings: config.ResultSettings
    nursery: trio.Nursery
    new_id: Callable[[], str]
    on_kept: Callable[[float], None]
    """Something is kept until then, on trio's clock."""
    folder: ResultFolder
    is_local: bool = False
    """Whether its client can see files of ours."""
    size: int = attrs.field(default=0, init=False)
    """Bytes of all that is kept."""
    _kept: OrderedDict[str, Kept] = attrs.field(factory=OrderedDict, init=False)
    """The oldest first, which is the first to go."""
    _gone: OrderedDict[str, Why] = attrs.field(factory=OrderedDict, init=False)
    _has_written: bool = attrs.field(default=False, init=False)

    async def keep(self, kind: str, pieces: Iterable[bytes], about: int, *, text: bool) -> Kept:
        """Keep what *pieces* are together, *about* so many bytes, of the MIME type *kind*.

        Raises:
            OSError: there is no place for it.
            ValueError: by *pieces*.
        """
        kept = Kept(self.new_id(), kind, text)
        if about <= PIECE and len(data := b"".join(pieces)) <= PIECE:
            kept.hold(data)
        else:
            await self._write(kept, pieces if about > PIECE else [data])
        # No checkpoint from here on.
        kept.expires = trio.current_time() + self.settings.keep_ms / 1000
        self._kept[kept.id] = kept
        self.size += kept.size
        while len(self._kept) > 1 and (
            self.size > self.settings.bytes or len(self._kept) > MAX_RESULTS
        ):
            self._forget_oldest("evicted")
        self.on_kept(kept.expires)
        return kept

    async def _write(self, kept: Kept, pieces: Iterable[bytes]) -> None:
        draft, self._has_written = Draft(self.folder), True
        try:
            # A disk may take for ever, and nobody waits that long for its end.
            await on_disk(partial(kept.write, draft, pieces))
        except BaseException:
            draft.give_up()
            raise

    def get(self, result_id: str) -> Kept:
        """Raises `NotFound`, which says whether there was one."""
        kept = self._kept.get(result_id)
        if kept is not None:
            return kept
        match self._gone.get(result_id):
            case "evicted":
                raise NotFound(
                    f"result {result_id!r} was evicted for newer ones: a session keeps at most "
                    f"{self.settings.bytes} bytes (results.bytes) and {MAX_RESULTS} results; call "
                    "again for a new one"
                )
            case "expired":
                raise NotFound(
                    f"result {result_id!r} was kept for {self.settings.keep_ms} ms "
                    "(results.keep_ms) and is gone; call again for a new one"
                )
        raise NotFound(
            f"no result {result_id!r} in this session; a preview has the id of what it is of as "
            '"result"'
        )

    def file_of(self, kept: Kept) -> str | None:
        """Where its client finds it, if it has a file and the client is on this machine."""
        return str(kept.path) if self.is_local and kept.path is not None else None

    def _forget_oldest(self, why: Why) -> None:
        result_id, kept = self._kept.popitem(last=False)
        self.size -= kept.size
        self._gone[result_id] = why
        if len(self._gone) > MAX_RESULTS_GONE:
            self._gone.popitem(last=False)
        if kept.path is not None:
            wall = Firewall("result_removal_crashed")
            begin(self.nursery, wall, _remove, kept.path)

    def next_due(self) -> float | None:
        oldest = next(iter(self._kept.values()), None)
        return oldest.expires if oldest is not None else None

    def sweep(self) -> None:
        """Forget what has been kept long enough."""
        now = trio.current_time()
        while (due := self.next_due()) is not None and due <= now:
            self._forget_oldest("expired")

    async def remove(self) -> None:
        """The session is over: nothing of this is left."""
        self._kept.clear()
        self.folder.close()
        if self._has_written:
            with trio.move_on_after(REMOVING, shield=True):
                await on_disk(self.folder.remove)


async def _remove(path: Path) -> None:
    with suppress(OSError):  # then it goes with its folder
        await on_disk(path.unlink)


@asynccontextmanager
async def open_folders(state: Path | None, *, is_local: bool) -> AsyncGenerator[ResultFolders]:
    """Where files of results are; with the block they are gone, and those that were left before."""
    folders = ResultFolders(state, is_local)
    if state is not None:  # else it can wait until there is something to be kept
        await on_disk(folders.clear)
    try:
        yield folders
    finally:
        if folders.is_made:
            with trio.move_on_after(REMOVING, shield=True):
                await on_disk(folders.remove)
