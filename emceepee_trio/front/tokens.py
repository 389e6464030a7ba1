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
from ..config import OWN, Http
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
    http: Http, token_file: Path | None, state: Path, environ: Mapping[str, str] = os.environ
) -> Credentials:
    """The configured tokens and the daemon's own, which is made if there is no other at all.

    Raises:
        BadToken: a file cannot be read or written, or holds no token.
    """
    known = list(http.tokens.items())
    minted = None
    if token_file is not None:
        where = str(token_file)
        known.append((OWN, read_token(token_file)))
    elif environ.get(VARIABLE):
        where = f"the environment variable {VARIABLE}"
        known.append((OWN, _checked(environ[VARIABLE], where)))
    elif known:
        where = "http.tokens of the configuration"
    else:
        path = state / MINTED
        where = str(path)
        token, is_new = _minted(path)
        minted = token if is_new else None
        known.append((OWN, token))
    return Credentials(Tokens.of(known), where, minted)


def state_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Where a daemon keeps what outlives it; systemd names several, separated by colons."""
    if given := environ.get("STATE_DIRECTORY"):
        return Path(given.split(":")[0])
    home = environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path("~/.local/state").expanduser()) / "emceepee"


def read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & (stat.S_IRGRP | stat.S_IROTH):
                logs.write("warn", "token_file_readable_by_others", path=str(path))
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise BadToken(f"cannot read the token file {path}: {error.strerror}") from None
    return _checked(content.decode("latin-1").strip(), str(path))


def _checked(token: str, where: str) -> str:
    if not re.fullmatch(r"[!-~]+", token) or len(token) > LONGEST:
        raise BadToken(f"{where} holds no token: expected one word of visible ASCII characters")
    return token


def _minted(path: Path) -> tuple[str, bool]:
    """The token at *path*, and whether it was made just now."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists():
            return read_token(path), False
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
        return read_token(path), False
    except OSError as error:
        raise BadToken(f"cannot keep a token in {path.parent}: {error.strerror}") from None
    return token, True
