"""Hosts and origins as requests and configurations spell them, made comparable.

What cannot be read is None, and equal to nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

import attrs

DEFAULT_PORTS = {"http": 80, "https": 443}

_AUTHORITY = (
    r"(?:\[(?P<six>[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)\]|(?P<name>[A-Za-z0-9._-]+))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_HOST = re.compile(_AUTHORITY)
_ORIGIN = re.compile(rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://{_AUTHORITY}")


@attrs.frozen
class Authority:
    """A host and perhaps a port, in the one spelling in which they can be compared."""

    host: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Authority | None:
        match = _HOST.fullmatch(text)
        return cls.of(match) if match else None

    @classmethod
    def of(cls, match: re.Match[str]) -> Authority | None:
        port = None if match["port"] is None else int(match["port"])
        host = spelled(match["six"] or match["name"])
        if host is None or not (port is None or 0 < port < 65536):
            return None
        if match["six"] is not None and address_of(host) is None:
            return None
        return cls(host, port)


@attrs.frozen
class Origin:
    """Where a page comes from."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Origin | None:
        match = _ORIGIN.fullmatch(text)
        authority = Authority.of(match) if match else None
        if match is None or authority is None:
            return None
        scheme = match["scheme"].lower()
        return cls(scheme, authority.host, authority.port or DEFAULT_PORTS.get(scheme))


@lru_cache(maxsize=64)  # every request names one of the same few
def address_of(host: str) -> IPv4Address | IPv6Address | None:
    """None for a name. IPv4 inside of IPv6 is the same as by itself."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


@lru_cache(maxsize=64)
def spelled(host: str) -> str | None:
    """An address in its shortest form, a name in lower case; None if nothing is left."""
    address = address_of(host)
    return str(address) if address is not None else host.lower().removesuffix(".") or None
