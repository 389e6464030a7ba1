"""Where bearer tokens come from: a file, the environment, the configuration, our own mint."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

import attrs

from .. import logs
from ..config import OWN, Http
from ..sources import Sources
from .security import Tokens
from .token_file import MINTED, VARIABLE, BadToken, checked, read_token


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
    known = list(http.bearers.items())
    minted = None
    if token_file is not None:
        where = str(token_file)
        known.append((OWN, _read(token_file, sources)))
    elif environ.get(VARIABLE):
        where = f"the environment variable {VARIABLE}"
        known.append((OWN, checked(environ[VARIABLE], where)))
    elif known:
        where = "http.tokens of the configuration"
    else:
        path = state / MINTED
        where = str(path)
        token, is_new = _minted(path, sources)
        minted = token if is_new else None
        known.append((OWN, token))
    return Credentials(Tokens.of(known), where, minted)


def _read(path: Path, sources: Sources | None) -> str:
    token, mode = read_token(path, sources)
    if stat.S_ISREG(mode):
        if mode & (stat.S_IWGRP | stat.S_IWOTH):
            # They need not know the token: they can have one of their own.
            logs.write("error", "token_file_writable_by_others", path=str(path))
        elif mode & (stat.S_IRGRP | stat.S_IROTH):
            logs.write("warn", "token_file_readable_by_others", path=str(path))
    return token


def _minted(path: Path, sources: Sources | None) -> tuple[str, bool]:
    """The token at *path*, and whether it was made just now."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            return _read(path, sources), False
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
        return _read(path, sources), False
    except OSError as error:
        raise BadToken(f"cannot keep a token in {path.parent}: {error.strerror}") from None
    return token, True
