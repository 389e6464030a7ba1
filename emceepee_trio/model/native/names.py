"""The name of a server's tool or prompt among those of other servers: ``server__tool``. Pure.

It depends on these two and on nothing else: not on what else there is, nor on who came first. So
what a client has learnt, allowed or written down holds for as long as its server has that name.
"""

from __future__ import annotations

import re
from hashlib import sha256

SEPARATOR = "__"
DIGITS = 6
"""Hexadecimal ones of a hash, that tell apart what would be called alike."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
"""What some clients, and the models behind them, take in no name."""


def native_name(server: str, name: str, most: int) -> str:
    """What *name* of *server* is called, in at most *most* characters.

    As the two are written, if that tells where one ends. Else with a hash of both: if there are
    characters that not everybody takes, if it is too long, or if somebody else might be meant
    (``b__c`` of ``a``, and ``c`` of ``a__b``).
    """
    written = f"{server}{SEPARATOR}{name}"
    plain = _FOREIGN.sub("_", written)
    if plain == written and len(plain) <= most and plain.find(SEPARATOR) == len(server):
        return plain
    return f"{plain[: most - DIGITS - 1]}_{digest(server, name)}"


def plain_name(server: str, native: str, most: int) -> str | None:
    """What *server* itself calls *native*, if one can see that; None if not, or it is no name of
    its."""
    name = native[len(server) + len(SEPARATOR) :]
    return name if native_name(server, name, most) == native else None


def may_be_of(server: str, native: str, most: int) -> bool:
    """Whether something of *server* could be called so."""
    beginning = _FOREIGN.sub("_", f"{server}{SEPARATOR}")
    return native.startswith(beginning[: most - DIGITS - 1])


def digest(*texts: str) -> str:
    # No name has a NUL in it, and what has one is told apart by the other text.
    joined = "\0".join(texts)
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
