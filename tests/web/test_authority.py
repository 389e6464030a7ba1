from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.web.authority import Authority, Origin

ports = st.none() | st.integers(1, 65535)
names = st.from_regex(r"[a-z0-9_][a-z0-9_-]{0,10}(\.[a-z_][a-z0-9_-]{0,10}){0,3}", fullmatch=True)
addresses = st.ip_addresses()


def written(host: str, port: int | None) -> str:
    return (f"[{host}]" if ":" in host else host) + (f":{port}" if port is not None else "")


@given(names | addresses, ports)
def test_a_host_is_what_was_written(
    host: str | IPv4Address | IPv6Address, port: int | None
) -> None:
    mapped = getattr(host, "ipv4_mapped", None)
    assert Authority.parse(written(str(host), port)) == Authority(str(mapped or host), port)


@given(st.ip_addresses(v=6))
def test_every_spelling_of_an_address_is_the_same(address: IPv6Address) -> None:
    assert Authority.parse(f"[{address.exploded.upper()}]") == Authority.parse(f"[{address}]")


@given(names, ports)
def test_case_and_a_last_dot_are_no_difference(host: str, port: int | None) -> None:
    assert Authority.parse(written(host.upper() + ".", port)) == Authority.parse(
        written(host, port)
    )


@given(st.sampled_from(["http", "https", "app"]), names | addresses, ports)
def test_an_origin_is_a_scheme_and_a_host(
    scheme: str, host: str | IPv4Address | IPv6Address, port: int | None
) -> None:
    parsed = Origin.parse(f"{scheme.upper()}://{written(str(host), port)}")
    authority = Authority.parse(written(str(host), port))
    assert parsed is not None
    assert authority is not None
    assert (parsed.scheme, parsed.host) == (scheme, authority.host)
    assert parsed.port == (port or {"http": 80, "https": 443}.get(scheme))
