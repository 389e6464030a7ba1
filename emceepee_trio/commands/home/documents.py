"""A file of settings that somebody else keeps, too: read whole, changed in one place only.

Links lead to the file that is changed, which keeps its mode and its owner. Nobody ever sees half of
a file: a new one takes the place of the old one.
"""

from __future__ import annotations

import copy
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from ...config import bounds, read_text
from ...errors import EmceepeeError
from ...model.json import edits, jsonc
from ...model.text import toml_edits
from ...sources import Sources, Unreadable

BOM = "\ufeff"
NEW_MODE = 0o600
"""Of a file that we make: there may be tokens in it."""


class Unusable(EmceepeeError):
    """A file that cannot be read or written; says which, why, and what to do."""


@attrs.frozen
class Document:
    path: Path
    """As its program knows it."""
    target: Path
    """Where links lead."""
    content: bytes | None
    """None if there is no such file."""
    data: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Document:
        """
        Raises:
            Unusable: there is something, and it is not to be understood.
        """
        try:
            target = path.resolve()
            is_there = target.exists()
            is_loop = target.is_symlink()  # Python 3.13 finds no fault with one
        except (OSError, RuntimeError) as error:
            raise Unusable(f"{path}: {_reason(error)}; mend that first") from None
        if is_loop:
            raise Unusable(f"{path}: a link that leads to itself; mend that first")
        if not is_there:
            return cls(path, target, None, {})
        content = _content(path)
        try:
            text = content.decode("utf-8-sig")
            data = read_text(text, target) if text.strip() else {}
        except UnicodeDecodeError:
            raise Unusable(f"{path} is not UTF-8; save it as such first") from None
        except jsonc.SyntaxProblem as error:
            if target.suffix != ".toml" and not jsonc.without_comments(text).strip():
                data = {}  # nothing but comments
            else:
                raise Unusable(f"{path}: {error}; mend that first") from None
        if not isinstance(data, dict):
            raise Unusable(f"{path} holds no object; mend that first")
        return cls(path, target, content, data)

    def at(self, keys: Sequence[str]) -> Any:
        """What is there; None if nothing is."""
        found: Any = self.data
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def with_entries(self, keys: Sequence[str], entries: Mapping[str, Mapping[str, Any]]) -> bytes:
        """The file with these *entries* in the object at *keys*; all else as it is.

        Raises:
            Unusable: there is no place for it.
        """
        wanted = copy.deepcopy(self.data)
        inner = wanted
        for i, key in enumerate(keys):
            inner = inner.setdefault(key, {})
            if not isinstance(inner, dict):
                raise self._unusable(f"{'.'.join(keys[: i + 1])} is no object; mend that first")
        inner.update(entries)
        return self._changed(lambda text: self._edits.put(text, keys, entries), wanted)

    def without_entry(self, keys: Sequence[str], name: str) -> bytes:
        """
        Raises:
            Unusable: it cannot be taken out.
        """
        wanted = copy.deepcopy(self.data)
        inner = wanted
        for key in keys:
            inner = inner[key]
        del inner[name]
        # In TOML a table that nothing is in may not be there at all.
        empty = {key: value for key, value in wanted.items() if key != keys[0] or value != {}}
        return self._changed(lambda text: self._edits.take(text, keys, name), wanted, empty)

    @property
    def _edits(self) -> ModuleType:
        return toml_edits if self.target.suffix == ".toml" else edits

    def _changed(self, change: Callable[[str], str], *wanted: object) -> bytes:
        before = (self.content or b"").decode()
        bom = BOM if before.startswith(BOM) else ""
        try:
            after: str = change(before.removeprefix(BOM))
            is_right = read_text(after, self.target) in wanted
            content = (bom + after).encode()
        except (edits.NoObject, jsonc.SyntaxProblem, ValueError):
            is_right, content = False, b""
        if not is_right:  # written in a way that we do not know
            raise self._unusable(
                "nothing can be put there or taken out without harm; do it by hand"
            )
        return content

    def _unusable(self, why: str) -> Unusable:
        return Unusable(f"{self.path}: {why}")

    def check_writable(self) -> None:
        """
        Raises:
            Unusable: it would not be right to write it, or is not possible.
        """
        if self.content is None:
            folder = self.target.parent
            while not folder.exists():
                folder = folder.parent
        else:
            folder = self.target.parent
            # Who may do anything is not to do it where the owner himself does not want to write.
            if not self.target.stat().st_mode & stat.S_IWUSR:
                leads = "" if self.target == self.path else f" (it leads to {self.target})"
                raise self._unusable(
                    f"read-only{leads}; chmod u+w it, or add the entry where it is made"
                )
            if not os.access(self.target, os.W_OK):
                raise self._unusable("it is not yours to write; ask its owner, or use sudo")
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise self._unusable(f"nothing can be written to {folder}; make it writable first")

    def missing_folders(self) -> list[Path]:
        """Those that have to be made for it, the outermost first."""
        return [each for each in reversed(self.target.parents) if not each.exists()]

    def write(self, content: bytes, *, private: bool = False) -> None:
        """Put *content* in its place, at once.

        With *private*, nobody but the owner may read it from now on.

        Raises:
            Unusable: it is as it was.
        """
        self.check_writable()
        try:
            for folder in self.missing_folders():
                folder.mkdir(mode=0o700)
            _replace(self.target, content, self._check_same, private=private)
        except OSError as error:
            raise self._unusable(f"cannot be written: {_reason(error)}; it is as it was") from None

    def remove(self) -> None:
        """
        Raises:
            Unusable: it is still there.
        """
        self._check_same()
        try:
            self.target.unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(f"cannot be removed: {_reason(error)}") from None

    def _check_same(self) -> None:
        try:
            now = _content(self.target) if self.target.exists() else None
        except Unusable:
            now = b""
        if now != self.content:
            raise self._unusable("somebody else has just written it; try again")


def _content(path: Path) -> bytes:
    try:
        content = Sources().read(path, bounds.MAX_CONFIG_BYTES).content
    except Unreadable as error:
        raise Unusable(f"{path}: {error}") from None
    if len(content) > bounds.MAX_CONFIG_BYTES:
        raise Unusable(
            f"{path} is longer than {bounds.MAX_CONFIG_BYTES} bytes, so it is left alone"
        )
    return content


def _replace(target: Path, content: bytes, check: Callable[[], None], *, private: bool) -> None:
    """As late as possible it is checked that there still is what was read."""
    fd, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(fd, "wb") as file:
            if target.exists():
                old = target.stat()
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(fd, old.st_uid, old.st_gid)
                shutil.copystat(target, name)
            mode = target.stat().st_mode if target.exists() else NEW_MODE
            os.fchmod(fd, stat.S_IMODE(mode) & (NEW_MODE if private else ~0))
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.utime(name)
        check()
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
