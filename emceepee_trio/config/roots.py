"""The folders that servers are told to keep to, as ``file://`` URIs, and which of them is in which.

Servers read URIs each in their own way. So what is compared is a path, as it really is once all
links are followed, and what a server is told is that path, spelled anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote, urlsplit

from ..model.json.fields import Doc, Most, frozen
from ..model.json.problems import Problem, join
from .bounds import MAX_NAME, MAX_URI


@frozen
class Folder:
    """A folder that servers are told of."""

    uri: Annotated[str, Most(most_characters=MAX_URI), Doc("A ``file://`` URI, or a folder.")]
    name: Annotated[str | None, Most(most_characters=MAX_NAME), Doc("What it is called.")] = None

    def to_json(self) -> dict[str, str]:
        return {"uri": self.uri} | ({} if self.name is None else {"name": self.name})


Roots = tuple[str | Folder, ...]


def path_of(uri: str) -> str | None:
    """The path that a URI stands for; None if it is no path of this machine."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    if not path.startswith("/") or re.search(r"[\0-\x1f\\]", path):
        return None
    return path


def is_root(root: str | Folder) -> bool:
    """Whether it can be meant: a folder, or the URI of one."""
    uri = root if isinstance(root, str) else root.uri
    if "://" in uri:
        return path_of(uri) is not None
    return bool(uri) and "\0" not in uri


def roots_problems(roots: Roots | None) -> Iterator[Problem]:
    for i, root in enumerate(roots or ()):
        if not is_root(root):
            yield Problem(join("roots", i), "expected a folder, or a file:// URI of one")


def resolved(root: str | Folder, folder: Path, environ: Mapping[str, str]) -> Folder:
    """With a URI; a path starts at *folder*, or at home."""
    uri, name = (root, None) if isinstance(root, str) else (root.uri, root.name)
    if "://" not in uri:
        home = environ.get("HOME")
        if home and (uri == "~" or uri.startswith("~/")):
            uri = home + uri[1:]
        uri = Path(os.path.normpath(folder / uri)).as_uri()
    return Folder(str(uri), name)


def as_roots(roots: Roots) -> tuple[Folder, ...]:
    """Each with a URI, where no file says from where paths start."""
    return tuple(
        root if isinstance(root, Folder) and "://" in root.uri else resolved(root, Path.cwd(), {})
        for root in roots
    )


def within(
    asked: Sequence[Folder], allowed: Sequence[Folder]
) -> tuple[tuple[Folder, ...], tuple[Folder, ...]]:
    """What of *asked* is in *allowed*, spelled anew; and which of them are not, not altogether.

    Where something larger is asked for, what is allowed of it is in it. Looks at the disk.
    """
    bases = [(_real(base), base) for base in allowed]
    found: list[Folder] = []
    beyond: list[Folder] = []
    for root in asked:
        real = _real(root)
        if real is not None and any(_is_in(real, base) for base, _ in bases):
            uri = Path(real).as_uri()
            found.append(root if root.uri.rstrip("/") == uri else Folder(uri, root.name))
            continue
        beyond.append(root)
        if real is not None:
            found += [root_ for base, root_ in bases if base is not None and _is_in(base, real)]
    return tuple(dict.fromkeys(found)), tuple(beyond)


def _real(root: Folder) -> str | None:
    path = path_of(root.uri)
    return None if path is None else os.path.realpath(path)


def _is_in(path: str, base: str | None) -> bool:
    return base is not None and (path == base or path.startswith(base.rstrip("/") + "/"))
