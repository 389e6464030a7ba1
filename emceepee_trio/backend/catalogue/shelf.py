"""The memory of what servers have, in the state directory: what outlives a daemon.

One file for each entry, so that daemons which share a directory never write each other's; each has
its name only once it is complete. Names are keyed hashes, the key lies beside them. A file that
cannot be used costs what it held: it is moved aside, and said. A disk that cannot be written to is
said once, and then the memory is that of this process.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import trio

from ... import logs
from ...model.json.spelling import spell
from ...model.wire import loads
from ...waits.firewall import Firewall, begin_lasting
from ..connections.client import Negotiated
from ..connections.turns import Turns
from .catalog import SOURCES
from .memory import ENTRIES, ONE, SIZE, KnownServer, Memory, Remembered

VERSION = 1
FOLDER = "catalogue"
KEY, KEY_BYTES = "key", 32
LONGEST = 2 * ONE
"""Bytes of a file; JSON may be longer than what it is of."""
BROKEN = ".broken"
"""At the end of the name of a file that has been moved aside; the next one takes its place."""
FORGOTTEN = 3600.0
"""Seconds after which a file without a name yet is taken for one that nobody will finish."""
TELLING = 8
"""Characters of a value of a header or a variable; an entry that repeats one is not written."""
LAST_WORDS = 2.0
"""Seconds to write, at the end, what is not written yet."""


class _Broken(ValueError):
    """No file of ours; says why."""


@attrs.define(eq=False)
class Shelf:
    folder: Path
    memory: Memory
    _changed: dict[str, None] = attrs.field(factory=dict, init=False)
    """Names of entries whose files are old."""
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_told: bool = attrs.field(default=False, init=False)
    """That it cannot be written to."""

    def load(self) -> None:
        """Fill the memory. Reads files, so it is called in a thread, and before there is anybody.

        Whatever there is to complain of becomes a line of the log.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.memory.key = self._key()
        except OSError as error:
            self._cannot(error)
            return
        self.memory.changed = self._note
        room, size = ENTRIES, 0
        for path in self._files():
            if (known := self._read(path)) is None:
                continue
            size += known.size
            if not room or size > SIZE or self.memory.is_old(known):
                with suppress(OSError):
                    path.unlink()
                continue
            room -= 1
            self.memory.put(path.stem, known)

    def _files(self) -> list[Path]:
        """The newest first, and no more that are of no use than of use."""
        found: list[tuple[float, Path]] = []
        try:
            for path in self.folder.iterdir():
                with suppress(OSError):
                    at = path.lstat().st_mtime
                    if path.suffix == ".json" and not path.name.startswith("."):
                        found.append((at, path))
                    elif path.name.startswith(".") and at < time.time() - FORGOTTEN:
                        path.unlink()
        except OSError as error:
            self._cannot(error)
        return [path for _, path in sorted(found, reverse=True)]

    def _key(self) -> bytes:
        path = self.folder / KEY
        while True:
            with suppress(FileNotFoundError):
                try:
                    key = bytes.fromhex(_content(path, 1000).decode("ascii").strip())
                    if len(key) == KEY_BYTES:
                        return key
                    raise _Broken("no key")
                except ValueError as error:
                    self._say_broken(path, error)
                    path.replace(_aside(path))
            with suppress(FileExistsError):  # another daemon was first
                self._write(path, secrets.token_hex(KEY_BYTES) + "\n", replace=False)

    def _read(self, path: Path) -> KnownServer | None:
        try:
            content = _content(path, LONGEST)
            said = loads(content.decode("utf-8", "surrogatepass"))
            if isinstance(said, dict) and said.get("version") not in (None, VERSION):
                return None  # of an older or a newer daemon
            return _known(said, len(content))
        except (ValueError, RecursionError) as error:
            self._say_broken(path, error)
            with suppress(OSError):
                path.replace(_aside(path))
        except OSError as error:
            self._say_broken(path, error)
        return None

    def _say_broken(self, path: Path, error: Exception) -> None:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        aside = str(_aside(path))
        logs.write("warn", "catalogue_broken", path=str(path), error=why, moved_to=aside)

    def _cannot(self, error: OSError) -> None:
        if not self._is_told:
            self._is_told = True
            why = error.strerror or str(error)
            logs.write("warn", "catalogue_not_kept", path=str(self.folder), error=why)

    def _note(self, name: str) -> None:
        self._changed[name] = None
        self._news.set()

    async def run(self) -> None:
        """Write what changes, one after the other."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            await self.write()

    async def write(self) -> None:
        while self._changed:
            name = next(iter(self._changed))
            del self._changed[name]
            try:
                await self._write_one(name)
            except trio.Cancelled:
                self._changed[name] = None
                raise

    async def _write_one(self, name: str) -> None:
        text: str | None = None
        if (known := self.memory.get(name)) is not None:
            async with Turns() as turns:
                text = await turns.through(spell(_to_json(known)))
        private = () if known is None else known.private
        # A disk may take for ever, and nobody waits that long for its end: what is written then is
        # complete or nothing.
        put = self._put
        await trio.to_thread.run_sync(put, name, text, private, abandon_on_cancel=True)

    def _put(self, name: str, text: str | None, private: tuple[str, ...]) -> None:
        """In a thread."""
        path = self.folder / f"{name}.json"
        try:
            if text is None or any(_is_in(text, value) for value in private):
                path.unlink(missing_ok=True)
            else:
                self._write(path, text)
        except OSError as error:
            self._cannot(error)
        else:
            self._is_told = False

    def _write(self, path: Path, text: str, *, replace: bool = True) -> None:
        """Complete before it has its name: another daemon may look at this very moment."""
        draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))
            if replace:
                draft.replace(path)
            else:
                os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)


def _content(path: Path, longest: int) -> bytes:
    """Of a file of ours that nobody else can have written.

    Raises:
        ValueError: it is none.
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise _Broken("not a regular file")
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _Broken("others may have written it")
        content = file.read(longest + 1)
    if len(content) > longest:
        raise _Broken(f"longer than {longest} bytes")
    return content


def _aside(path: Path) -> Path:
    return path.with_name(path.name + BROKEN)


def _is_in(text: str, value: str) -> bool:
    if len(value) < TELLING:
        return False
    spelled = (json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))
    return any(each in text for each in spelled)


def _to_json(known: KnownServer) -> dict[str, Any]:
    agreed = known.negotiated
    return {
        "version": VERSION,
        "protocol_version": agreed.protocol_version,
        "capabilities": dict(agreed.capabilities),
        "server_info": dict(agreed.server_info),
        "instructions": agreed.instructions,
        "at": known.at,
        "lists": {
            name: {"entries": each.entries, "at": each.at, "size": each.size}
            for name, each in known.lists.items()
        },
    }


def _known(said: Any, size: int) -> KnownServer:
    """Raises `_Broken` if it is of another shape."""
    try:
        agreed = Negotiated(
            _of(said["protocol_version"], str),
            _of(said["capabilities"], dict),
            _of(said["server_info"], dict),
            None if said["instructions"] is None else _of(said["instructions"], str),
        )
        found = _of(said["lists"], dict)
        lists = {name: _remembered(found[name]) for name in SOURCES if name in found}
        at = _number(said["at"])
    except (KeyError, TypeError) as error:
        raise _Broken(f"not of the expected shape ({type(error).__name__}: {error})") from None
    return KnownServer(agreed, lists, at, size)


def _remembered(said: Any) -> Remembered:
    entries = [_of(entry, dict) for entry in _of(said["entries"], list)]
    return Remembered(entries, _number(said["at"]), round(_number(said["size"])))


def _of(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"a {type(value).__name__}")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e12:
        raise TypeError("no number that can be meant")
    return float(value)


@asynccontextmanager
async def open_memory(state: Path | None) -> AsyncGenerator[Memory]:
    """With what is in the *state* directory, if there is one; what comes is written there."""
    memory = Memory(time.time)
    if state is None:
        yield memory
        return
    shelf = Shelf(state / FOLDER, memory)
    await trio.to_thread.run_sync(shelf.load, abandon_on_cancel=True)
    try:
        async with trio.open_nursery() as nursery:
            begin_lasting(nursery, "catalogue_crashed", shelf.run)
            yield memory
            nursery.cancel_scope.cancel("over")
    finally:
        with Firewall("catalogue_crashed"), trio.move_on_after(LAST_WORDS, shield=True):
            await shelf.write()
