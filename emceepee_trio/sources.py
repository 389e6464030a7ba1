"""Files that an operator names, read so that none of them keeps anybody waiting.

A regular file is read as it is. A pipe, such as a shell makes of ``<(…)`` or ``/dev/stdin``, gives
what it has once, so that is kept: a daemon that reads its files again finds the same. Nothing else
is a file to be read: devices and sockets are refused at once, and so is a pipe that nobody has
opened to write.
"""

from __future__ import annotations

import os
import select
import stat
import time
from errno import EISDIR
from pathlib import Path

import attrs

from .errors import EmceepeeError

PATIENCE = 10.0
"""Seconds that the writer of a pipe may take in all."""


class Unreadable(EmceepeeError):
    """Why a file cannot be read."""


@attrs.frozen
class Content:
    content: bytes
    mode: int
    """As of :func:`os.stat`."""


@attrs.define(eq=False)
class Sources:
    """What is read for one process."""

    patience: float = PATIENCE
    """For pipes that were not read before; with none, they are refused."""
    _kept: dict[Path, Content] = attrs.field(factory=dict, init=False)

    def read(self, path: Path, longest: int) -> Content:
        """At most one byte more than *longest* of what is there.

        Raises:
            Unreadable: it is missing, no file, or not to be had.
        """
        if (kept := self._kept.get(path)) is not None:
            return kept
        try:
            # Neither waiting for a writer, nor becoming the session of a terminal.
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                mode = os.fstat(fd).st_mode
                if stat.S_ISREG(mode):
                    with os.fdopen(fd, "rb", closefd=False) as file:
                        return Content(file.read(longest + 1), mode)
                if not stat.S_ISFIFO(mode):
                    is_folder = stat.S_ISDIR(mode)
                    raise Unreadable(os.strerror(EISDIR) if is_folder else "not a regular file")
                found = Content(self._drain(fd, longest), mode)
            finally:
                os.close(fd)
        except (OSError, ValueError) as error:
            raise Unreadable(getattr(error, "strerror", None) or str(error)) from None
        self._kept[path] = found
        return found

    def _drain(self, fd: int, longest: int) -> bytes:
        """All that is written to a pipe."""
        if self.patience <= 0:
            raise Unreadable("not a regular file; a pipe is read at the start only")
        end = time.monotonic() + self.patience
        found = b""
        while len(found) <= longest:
            try:
                chunk = os.read(fd, longest + 1 - len(found))
            except BlockingIOError:
                left = end - time.monotonic()
                if left <= 0 or not select.select([fd], [], [], left)[0]:
                    raise Unreadable(
                        f"not a regular file, but a pipe that did not end in {self.patience:g} s"
                    ) from None
            else:
                if not chunk:
                    break
                found += chunk
        if not found:
            raise Unreadable("not a regular file, but a pipe without content")
        return found
