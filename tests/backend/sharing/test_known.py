"""What a server has named is remembered, and not for ever."""

from __future__ import annotations

from emceepee_trio.backend.sharing.known import MOST, Known


def test_what_was_named_is_known_and_goes_on_until_it_is_closed() -> None:
    known = Known()
    known.add("one", is_open=True)
    known.add("two")
    known.add(None)
    known.add({"not": "a name"})
    assert "one" in known
    assert "two" in known
    assert None not in known
    assert known.open == ["one"]
    known.close("one")
    known.close("three")
    assert "one" in known
    assert "three" not in known
    assert known.open == []


def test_the_oldest_makes_room() -> None:
    known = Known()
    for number in range(MOST + 1):
        known.add(str(number))
    known.add(str(MOST), is_open=True)
    assert "0" not in known
    assert "1" in known
    assert known.open == [str(MOST)]
