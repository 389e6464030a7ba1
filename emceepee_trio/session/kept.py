"""One content that is kept whole: in memory if it is short, else in a file of its own.

Files are written piece by piece, so that no content is in memory twice. They are of mode 0600, in a
folder of their session, in a folder of this daemon, which it holds locked: what another one has
left behind that was killed can be told by that, and is removed. All that touches a disk here is
called in threads. It does not know what is kept, or for how long.
"""

from __future__ import annotations

import binascii
import fcntl
import os
import secrets
import shutil
import tempfile
import threading
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from ..model.json.long.text import Text

PIECE = 64 * 1024
"""Bytes that are written, or looked through, at once; what has no more is kept in memory."""
FOLDER = "results"
TEMPORARY = "emceepee-results-"
"""What the folder of a daemon is called that has no state directory."""
UNFINISHED = 3600.0
"""Seconds after which a folder without its name is taken for one that nobody will finish."""

SUFFIXES = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}


def text_pieces(texts: Sequence[Text]) -> Iterator[bytes]:
    for said in texts:
        for start in range(0, len(said), PIECE):
            yield said[start : start + PIECE].encode("utf-8", "surrogatepass")


def decoded_pieces(data: Text) -> Iterator[bytes]:
    """Of base64; raises `ValueError` where it is none."""
    for start in range(0, len(data), PIECE):
        yield binascii.a2b_base64(data[start : start + PIECE], strict_mode=True)


@attrs.define(eq=False)
class Kept:
    id: str
    type: str
    """As MIME has it."""
    is_text: bool
    size: int = attrs.field(default=0, init=False)
    expires: float = attrs.field(default=0.0, init=False)
    """On trio's clock."""
    path: Path | None = attrs.field(default=None, init=False)
    _data: bytes = attrs.field(default=b"", init=False)
    _breaks: int = attrs.field(default=0, init=False)
    """Ends of lines."""
    _ends_open: bool = attrs.field(default=False, init=False)
    """Whether the last line has no end."""
    _starts: array[int] = attrs.field(factory=lambda: array("Q", [0]), init=False)
    _lines_at: array[int] = attrs.field(factory=lambda: array("Q", [0]), init=False)
    """Where each piece starts, and how many ends of lines are before that."""

    @property
    def lines(self) -> int:
        return self._breaks + self._ends_open

    @property
    def name(self) -> str:
        return self.id + SUFFIXES.get(self.type, ".txt" if self.is_text else ".bin")

    def hold(self, data: bytes) -> None:
        """In memory."""
        self._data = data
        self._count(data)

    def write(self, draft: Draft, pieces: Iterable[bytes]) -> None:
        """To a file; in a thread.

        Raises:
            OSError: it cannot be written, or nobody wants it any more; nothing is left of it.
            ValueError: by *pieces*, likewise.
        """
        with draft.open(self.name) as fd:
            for piece in pieces:
                self._count(piece)
                view = memoryview(piece)
                while view:
                    draft.check()
                    view = view[os.write(fd, view) :]
        self.path = draft.path

    def _count(self, piece: bytes) -> None:
        if piece:
            self.size += len(piece)
            self._breaks += piece.count(b"\n")
            self._ends_open = not piece.endswith(b"\n")
            self._starts.append(self.size)
            self._lines_at.append(self._breaks)

    def read(self, start: int, end: int) -> bytes:
        """Its bytes from *start* to before *end*. In a thread, if it has a file."""
        if self.path is None:
            return self._data[start:end]
        fd = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return _read(fd, start, end)
        finally:
            os.close(fd)

    def start_of(self, line: int) -> int:
        """Where that line starts, from 1 on; where it ends all if there is no such line."""
        if line <= 1:
            return 0
        if line > self.lines:
            return self.size
        # The piece in which the line before that ends.
        nth = max(0, bisect_left(self._lines_at, line - 1) - 1)
        start, missing = self._starts[nth], line - 1 - self._lines_at[nth]
        while missing:
            if not (for_one := self.read(start, start + PIECE)):
                return start  # somebody has altered the file
            if (breaks := for_one.count(b"\n")) < missing:
                missing, start = missing - breaks, start + len(for_one)
                continue
            at = -1
            for _ in range(missing):
                at = for_one.index(b"\n", at + 1)
            return start + at + 1
        return start

    def line_at(self, offset: int) -> int:
        """The number of the line in which that byte is."""
        nth = bisect_right(self._starts, offset) - 1
        before = self.read(self._starts[nth], offset)
        return self._lines_at[nth] + before.count(b"\n") + 1


def _read(fd: int, start: int, end: int) -> bytes:
    parts = []
    while start < end and (part := os.pread(fd, end - start, start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


@attrs.define(eq=False)
class Draft:
    """A file that is being written by a thread, for which somebody waits, or no more."""

    folder: ResultFolder
    path: Path | None = attrs.field(default=None, init=False)
    _given_up: bool = attrs.field(default=False, init=False)

    def open(self, name: str) -> _Writing:
        self.path = self.folder.path_of(name)
        return _Writing(self)

    def check(self) -> None:
        if self._given_up or self.folder.is_closed:
            raise InterruptedError("nobody wants it any more")

    def give_up(self) -> None:
        """Nothing of it is left, now or as soon as the thread sees that."""
        self._given_up = True
        if self.path is not None:
            with suppress(OSError):
                self.path.unlink()


@attrs.define(eq=False)
class _Writing:
    draft: Draft
    _fd: int = attrs.field(default=-1, init=False)

    def __enter__(self) -> int:
        assert self.draft.path is not None
        self._fd = self.draft.folder.create(self.draft.path)
        return self._fd

    def __exit__(self, kind: object, *_: object) -> None:
        os.close(self._fd)
        if kind is not None:
            self.draft.give_up()
        self.draft_is_wanted()

    def draft_is_wanted(self) -> None:
        """Looked at once more: who gave it up has looked for a file that was not complete."""
        if self.draft._given_up:
            self.draft.give_up()


@attrs.define(eq=False)
class ResultFolder:
    """Of one session; made with its first file."""

    _make: Callable[[], Path]
    is_closed: bool = attrs.field(default=False, init=False)
    _path: Path | None = attrs.field(default=None, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def path_of(self, name: str) -> Path:
        with self._lock:
            if self.is_closed:
                raise InterruptedError("the session is over")
            if self._path is None:
                self._path = self._make()
            return self._path / name

    def create(self, path: Path) -> int:
        with self._lock:  # nothing is created in it once it is being removed
            if self.is_closed:
                raise InterruptedError("the session is over")
            return os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )

    def close(self) -> None:
        """Nothing is written to it any more."""
        self.is_closed = True

    def remove(self) -> None:
        self.close()
        with self._lock:  # whoever was about to make it has done so
            path = self._path
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)


@attrs.define(eq=False)
class ResultFolders:
    """Those of one daemon, below its *state* directory, or in a temporary one of its own."""

    state: Path | None
    is_local: bool = False
    """Whether clients can see its files."""
    _path: Path | None = attrs.field(default=None, init=False)
    _fd: int = attrs.field(default=-1, init=False)
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @property
    def _root(self) -> Path:
        return Path(tempfile.gettempdir()) if self.state is None else self.state / FOLDER

    @property
    def _prefix(self) -> str:
        return TEMPORARY if self.state is None else ""

    @property
    def is_made(self) -> bool:
        return self._path is not None

    def new(self) -> ResultFolder:
        return ResultFolder(self._make)

    def _make(self) -> Path:
        with self._lock:
            if self._path is None:
                self._path = self._own()
            path = self._path / secrets.token_hex(8)
            path.mkdir(0o700)
            return path

    def _own(self) -> Path:
        """It has its name once it is locked: another daemon may look at this very moment."""
        root = self._root
        if self.state is None:
            self.clear()
        root.mkdir(0o700, parents=True, exist_ok=True)
        name = f"{self._prefix}{secrets.token_hex(8)}"
        draft = root / f".{name}"
        draft.mkdir(0o700)
        self._fd = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return draft.rename(root / name)

    def clear(self) -> None:
        """Remove what daemons have left that run no more."""
        with suppress(OSError):
            for path in self._root.iterdir():
                name = path.name.removeprefix(".")
                if name.startswith(self._prefix) and _is_left(path):
                    shutil.rmtree(path, ignore_errors=True)

    def remove(self) -> None:
        with self._lock:  # whoever was about to make it has done so
            path = self._path
        if path is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(self._fd)


def _is_left(path: Path) -> bool:
    """Whether the folder is of a daemon that is gone."""
    try:
        found = path.lstat()
        if found.st_uid != os.geteuid():
            return False
        if path.name.startswith("."):
            return found.st_mtime < time.time() - UNFINISHED
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)
