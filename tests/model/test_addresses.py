"""Which addresses are judged, and how they may be hidden in others."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.addresses import METADATA, objection

LINK_LOCAL, CLOUD = "a link-local address", "a cloud metadata address"
INSIDE = "another way to write 169.254.169.254, a cloud metadata address"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("169.254.169.254", CLOUD),
        ("100.100.100.200", CLOUD),
        ("168.63.129.16", CLOUD),
        ("192.0.0.192", CLOUD),
        ("fd00:ec2::254", CLOUD),
        ("fd20:ce::254", CLOUD),
        ("169.254.0.0", LINK_LOCAL),
        ("169.254.170.2", LINK_LOCAL),
        ("169.254.255.255", LINK_LOCAL),
        ("fe80::", LINK_LOCAL),
        ("fe80::1%eth0", LINK_LOCAL),
        ("febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", LINK_LOCAL),
        # The zone makes it another address, but no other destination.
        ("fd00:ec2::254%1", CLOUD),
        ("::169.254.169.254", INSIDE),
        ("::ffff:169.254.169.254", INSIDE),
        ("::ffff:0:169.254.169.254", INSIDE),
        ("::ffff:100.100.100.200%1", f"another way to write 100.100.100.200, {CLOUD}"),
        ("64:ff9b::169.254.169.254", INSIDE),
        ("64:ff9b:1::169.254.169.254", INSIDE),
        ("64:ff9b:1:a9fe:a9:fe00::", INSIDE),
        ("64:ff9b:1:a9:fe:a9fe::", INSIDE),
        ("64:ff9b:1::a9:fea9:fe00:0", INSIDE),
        ("2002:a9fe:a9fe::1", INSIDE),
        ("2001:0:a9fe:a9fe::", INSIDE),
        ("2001:0:102:304:0:0:5601:5601", INSIDE),
        ("2001:db8::5efe:169.254.169.254", INSIDE),
        ("2001:db8::200:5efe:169.254.169.254", INSIDE),
        ("::ffff:169.254.1.2", f"another way to write 169.254.1.2, {LINK_LOCAL}"),
    ],
)
def test_link_local_and_metadata_addresses_are_named(address: str, said: str) -> None:
    assert objection(ip_address(address)) == said


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "::"),
        *("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fc00::1", "fd00:ec2::1"),
        *("1.1.1.1", "169.253.255.255", "169.255.0.0", "2606:4700::1111", "fec0::1", "fe7f::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::1.1.1.1", "2002:101:101::1"),
        *("2001:db8::169.254.169.254", "64:ff9c::169.254.169.254", "ff02::1"),
    ],
)
def test_private_networks_this_machine_and_the_world_are_not(address: str) -> None:
    assert objection(ip_address(address)) is None


@pytest.mark.parametrize("address", sorted(METADATA, key=str))
def test_every_address_of_the_list_is_refused(address: IPv4Address | IPv6Address) -> None:
    assert objection(address) == CLOUD


bad = st.ip_addresses(v=4, network="169.254.0.0/16") | st.sampled_from(
    [address for address in sorted(METADATA, key=str) if isinstance(address, IPv4Address)]
)
bits = st.integers(0, 2**80 - 1)
ENVELOPES: dict[str, Callable[[int, int], int]] = {
    "compatible": lambda v4, _: v4,
    "mapped": lambda v4, _: 0xFFFF << 32 | v4,
    "translated": lambda v4, _: 0xFFFF << 48 | v4,
    "nat64": lambda v4, _: 0x0064_FF9B << 96 | v4,
    "own nat64": lambda v4, rest: 0x0064_FF9B_0001 << 80 | (rest & (2**48 - 1)) << 32 | v4,
    "6to4": lambda v4, rest: 0x2002 << 112 | v4 << 80 | rest,
    "teredo": lambda v4, rest: 0x2001_0000 << 96 | (rest & (2**64 - 1)) << 32 | (v4 ^ 0xFFFFFFFF),
}


@given(bad, bits, st.sampled_from(sorted(ENVELOPES)))
def test_no_envelope_hides_an_address(inner: IPv4Address, rest: int, envelope: str) -> None:
    assert objection(inner) is not None
    assert objection(IPv6Address(ENVELOPES[envelope](int(inner), rest))) is not None


@given(st.ip_addresses())
def test_every_address_is_judged(address: IPv4Address | IPv6Address) -> None:
    said = objection(address)
    if address.is_link_local:
        assert said is not None
    elif isinstance(address, IPv4Address):
        assert (said is not None) is (address in METADATA)
