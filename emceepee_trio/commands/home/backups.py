"""What files of clients were before we wrote to them, so that it can be undone byte for byte.

In the state directory, for the owner alone: what is in such files is nobody else's business.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import attrs

from ...web.token_file import BadToken, state_directory
from ..common.options import Usage
from .documents import Document, Unusable


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@attrs.frozen
class Backup:
    client: str
    path: str
    written: str
    """The digest of what we wrote."""
    was: str | None
    """The digest of what it was; None if there was no file."""
    made: tuple[str, ...] = ()
    """Folders that had to be made for it, the outermost first."""


@attrs.frozen
class Backups:
    folder: Path

    @classmethod
    def here(cls) -> Backups:
        """
        Raises:
            Usage: nobody says where to keep them.
        """
        try:
            return cls(state_directory() / "connected")
        except BadToken:
            raise Usage("there is no home to keep backups in; set XDG_STATE_HOME") from None

    def __iter__(self) -> Iterator[Backup]:
        for path in sorted(self.folder.glob("*.json")):
            with suppress(OSError, ValueError, TypeError):
                said = json.loads(path.read_text("utf-8"))
                yield Backup(**said | {"made": tuple(said["made"])})

    def of(self, document: Document) -> Backup | None:
        path = str(document.path)
        return next((backup for backup in self if backup.path == path), None)

    def content(self, backup: Backup) -> bytes | None:
        """What the file was; None if there was none.

        Raises:
            Unusable: it cannot be had any more.
        """
        if backup.was is None:
            return None
        path = self.before(backup)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}; so {backup.path} is left alone") from None
        if digest(content) != backup.was:
            raise Unusable(f"{path} is not what it was; so {backup.path} is left alone")
        return content

    def before(self, backup: Backup) -> Path:
        return self._path(backup).with_suffix(".before")

    def keep(self, backup: Backup, content: bytes | None) -> None:
        """
        Raises:
            Unusable: it cannot be kept, so nothing is to be changed.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if content is not None:
                _write(self.before(backup), content)
            _write(self._path(backup), json.dumps(attrs.asdict(backup), indent=2).encode())
        except OSError as error:
            why = f"{self.folder}: {error.strerror}; without a backup nothing is written"
            raise Unusable(why) from None

    def forget(self, backup: Backup) -> None:
        self._path(backup).unlink(missing_ok=True)
        self.before(backup).unlink(missing_ok=True)

    def _path(self, backup: Backup) -> Path:
        return self.folder / f"{backup.client}-{digest(backup.path.encode())[:12]}.json"


def _write(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_bytes(content)
    new.replace(path)
