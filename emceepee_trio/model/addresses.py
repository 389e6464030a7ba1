"""Which addresses nobody is to be sent to: those of a link, and those where clouds tell secrets.

A judgement of one address. Knows neither names nor how they are resolved; private networks and
this machine itself are nobody's business here.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

METADATA = frozenset(
    {
        IPv4Address("169.254.169.254"),  # most of them
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("168.63.129.16"),  # Azure's WireServer
        IPv4Address("192.0.0.192"),  # Oracle, the classic one
        IPv6Address("fd00:42::42"),  # Scaleway
        IPv6Address("fd00:100::100:200"),  # Alibaba
        IPv6Address("fd00:a9fe:a9fe::1"),  # Linode
        IPv6Address("fd00:c1::a9fe:a9fe"),  # Oracle
        IPv6Address("fd00:ec2::23"),  # Amazon, for the pods of EKS
        IPv6Address("fd00:ec2::254"),  # Amazon
        IPv6Address("fd20:ce::254"),  # Google
    }
)
"""Where a machine in a cloud is told its credentials, unless that is link-local anyway."""

_LINK_LOCAL = IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10")
"""What newer Pythons call so includes other ways to write the first."""

_LOW = (
    IPv6Network("::/96"),  # IPv4-compatible
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated
    IPv6Network("64:ff9b::/96"),  # NAT64
    IPv6Network("64:ff9b:1::/48"),  # NAT64, of a network's own
)
"""Whose last 32 bits are an IPv4 address."""

_LOCAL_NAT64 = _LOW[-1]
_6TO4 = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Before the last 32 bits, in any network."""


def objection(address: Address) -> str | None:
    """What *address* is that it should not be, ``None`` if nothing is."""
    plain = IPv6Address(int(address)) if isinstance(address, IPv6Address) else address  # no zone
    if plain in METADATA:
        return "a cloud metadata address"
    if any(plain in network for network in _LINK_LOCAL):
        return "a link-local address"
    if isinstance(plain, IPv6Address):
        for inner in _carried(plain):
            if (found := objection(inner)) is not None:
                return f"another way to write {inner}, {found}"
    return None


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses to which a network may translate *address*, or tunnel what it is sent."""
    packed = address.packed
    if any(address in network for network in _LOW) or int.from_bytes(packed[8:12]) in _ISATAP:
        yield IPv4Address(packed[12:])
    if address in _LOCAL_NAT64:
        # A prefix of 48, 56 or 64 bits; the address flows around the eighth byte (RFC 6052).
        around = packed[:8] + packed[9:]
        yield from (IPv4Address(around[start : start + 4]) for start in (6, 7, 8))
    if address in _6TO4:
        yield IPv4Address(packed[2:6])
    if address in _TEREDO:
        yield IPv4Address(packed[4:8])  # the server that is asked
        yield IPv4Address(bytes(255 - byte for byte in packed[12:]))
