"""What a server has named is remembered, and not for ever."""

from __future__ import annotations

from emceepee_trio.backend.sharing.named import MOST, GivenNames


def test_what_was_named_is_known_and_goes_on_until_it_is_closed() -> None:
    named = GivenNames()
    named.add("one", is_open=True)
    named.add("two")
    named.add(None)
    named.add({"not": "a name"})
    assert "one" in named
    assert "two" in named
    assert None not in named
    assert named.open == ["one"]
    named.close("one")
    named.close("three")
    assert "one" in named
    assert "three" not in named
    assert named.open == []


def test_the_oldest_makes_room() -> None:
    named = GivenNames()
    for number in range(MOST + 1):
        named.add(str(number))
    named.add(str(MOST), is_open=True)
    assert "0" not in named
    assert "1" in named
    assert named.open == [str(MOST)]
