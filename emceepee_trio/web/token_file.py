"""The file with the token of a daemon, for the daemon and for whoever looks for it. Light."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ..errors import EmceepeeError
from ..sources import Sources, Unreadable

VARIABLE = "EMCEEPEE_TOKEN"
MINTED = "token"
"""Its name in the state directory."""
LONGEST = 4096


class BadToken(EmceepeeError):
    """A token that cannot be had, or be sent; says where it was looked for."""


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a daemon keeps what outlives it; systemd names several, separated by colons."""
    if given := environ.get("STATE_DIRECTORY"):
        return Path(given.split(":")[0])
    home = environ.get("XDG_STATE_HOME")
    try:
        return (Path(home) if home else Path("~/.local/state").expanduser()) / "emceepee"
    except RuntimeError:
        raise BadToken("there is no home to keep a token in; name a --state-dir") from None


def state_to_keep(given: Path | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where to keep what may as well be forgotten; no home is made for that."""
    if given is not None or environ.get("STATE_DIRECTORY") or environ.get("XDG_STATE_HOME"):
        return given or state_directory(environ)
    try:
        return state_directory(environ) if Path.home().is_dir() else None
    except (BadToken, RuntimeError):
        return None


def find_token(state: Path | None, environ: Mapping[str, str] = os.environ) -> str | None:
    """For a client of a daemon: that of the environment or of the state directory, if there is one.

    Raises:
        BadToken: the file is there, but no good.
    """
    if token := environ.get(VARIABLE):
        return token
    path = (state or state_directory()) / MINTED
    try:
        return read_token(path)[0] if path.exists() else None
    except OSError as error:
        raise BadToken(str(error)) from None


def read_token(path: Path, sources: Sources | None = None) -> tuple[str, int]:
    """And the mode of the file.

    Raises:
        BadToken: it is none.
    """
    try:
        found = (sources or Sources()).read(path, LONGEST)
    except Unreadable as error:
        raise BadToken(f"cannot read the token file {path}: {error}") from None
    return checked(found.content.decode("latin-1").strip(), str(path)), found.mode


def checked(token: str, where: str) -> str:
    if not re.fullmatch(r"[!-~]+", token) or len(token) > LONGEST:
        raise BadToken(f"{where} holds no token: expected one word of visible ASCII characters")
    return token
