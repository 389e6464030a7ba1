"""Where bearer tokens come from: a file, the environment, the configuration, our own mint."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

import attrs

from .. import logs
from ..config import OWN, Http, Sources, Unreadable
from ..errors import EmceepeeError
from .security import Tokens

VARIABLE = "EMCEEPEE_TOKEN"
MINTED = "token"
"""Its file in the state directory."""
LONGEST = 4096


class BadToken(EmceepeeError):
    """A token that cannot be had, or be sent; says where it was looked for."""


@attrs.frozen
class Credentials:
    """The tokens, and what people may be told of them."""

    tokens: Tokens
    where: str
    """Where a client's owner finds one."""
    minted: str | None = None
    """A token that was made just now: the one time that it is shown."""


def find(
    http: Http,
    token_file: Path | None,
    state: Path,
    environ: Mapping[str, str] = os.environ,
    sources: Sources | None = None,
) -> Credentials:
    """The configured tokens and the daemon's own, which is made if there is no other at all.

    Files are read by *sources* if it is not for the first time.

    Raises:
        BadToken: a file cannot be read or written, or holds no token.
    """
    known = list(http.tokens.items())
    minted = None
    if token_file is not None:
        where = str(token_file)
        known.append((OWN, read_token(token_file, sources)))
    elif environ.get(VARIABLE):
        where = f"the environment variable {VARIABLE}"
        known.append((OWN, _checked(environ[VARIABLE], where)))
    elif known:
        where = "http.tokens of the configuration"
    else:
        path = state / MINTED
        where = str(path)
        token, is_new = _minted(path, sources)
        minted = token if is_new else None
        known.append((OWN, token))
    return Credentials(Tokens.of(known), where, minted)


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a daemon keeps what outlives it; systemd names several, separated by colons."""
    if given := environ.get("STATE_DIRECTORY"):
        return Path(given.split(":")[0])
    home = environ.get("XDG_STATE_HOME")
    try:
        return (Path(home) if home else Path("~/.local/state").expanduser()) / "emceepee"
    except RuntimeError:
        raise BadToken("there is no home to keep a token in; name a --state-dir") from None


def read_token(path: Path, sources: Sources | None = None) -> str:
    try:
        found = (sources or Sources()).read(path, LONGEST)
    except Unreadable as error:
        raise BadToken(f"cannot read the token file {path}: {error}") from None
    if stat.S_ISREG(found.mode):
        if found.mode & (stat.S_IWGRP | stat.S_IWOTH):
            # They need not know the token: they can have one of their own.
            logs.write("error", "token_file_writable_by_others", path=str(path))
        elif found.mode & (stat.S_IRGRP | stat.S_IROTH):
            logs.write("warn", "token_file_readable_by_others", path=str(path))
    return _checked(found.content.decode("latin-1").strip(), str(path))


def _checked(token: str, where: str) -> str:
    if not re.fullmatch(r"[!-~]+", token) or len(token) > LONGEST:
        raise BadToken(f"{where} holds no token: expected one word of visible ASCII characters")
    return token


def _minted(path: Path, sources: Sources | None) -> tuple[str, bool]:
    """The token at *path*, and whether it was made just now."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            return read_token(path, sources), False
        token = secrets.token_urlsafe(32)
        # Complete before it has its name: another daemon may look at this very moment.
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(token + "\n")
            os.link(draft, path)
        finally:
            draft.unlink()
    except FileExistsError:
        return read_token(path, sources), False
    except OSError as error:
        raise BadToken(f"cannot keep a token in {path.parent}: {error.strerror}") from None
    return token, True
