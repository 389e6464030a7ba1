from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.allowed import AllowedNames
from emceepee_trio.model.json.intake import finished
from emceepee_trio.model.native.choice import Chosen, Offered, choose
from real_tools import servers


def offered(server: str, tools: list[str], *first: str) -> Offered:
    return Offered(server, [{"name": name} for name in tools], AllowedNames.of(first))


def chosen(*offers: Offered, most: int = 100) -> Chosen:
    return finished(choose(offers, 45, most))


def names(found: Chosen) -> list[str]:
    return [native.name for native in found.listed]


def test_all_for_which_there_is_room_in_their_order() -> None:
    found = chosen(offered("b", ["y", "x"], "x"), offered("a", ["z"], "z"), most=3)
    assert names(found) == ["b__y", "b__x", "a__z"]
    assert found.left_out == 0
    assert found.known["a__z"] == ("a", "z")


def test_beyond_that_first_what_is_wanted() -> None:
    offers = offered("a", ["k", "l", "m"]), offered("b", ["x1", "x2", "y"], "x*", "z")
    assert names(chosen(*offers, most=4)) == ["a__k", "a__l", "b__x1", "b__x2"]
    assert names(chosen(*offers, most=1)) == ["b__x1"]
    found = chosen(*offers, most=0)
    assert names(found) == []
    assert found.left_out == 6
    assert found.known["b__y"] == ("b", "y")


def test_what_is_called_alike_is_there_once_and_what_has_no_name_is_not() -> None:
    nameless = Offered("c", [{"name": 1}, {}, {"name": "x", "title": "1"}, {"name": "x"}])
    found = chosen(nameless)
    assert [(each.name, each.tool) for each in found.listed] == [
        ("c__x", {"name": "x", "title": "1"})
    ]
    assert found.left_out == 0


@given(
    st.permutations(list(servers(30))),
    st.sets(st.sampled_from(list(servers(30)))),
    st.integers(0, 130),
)
def test_whatever_is_there_in_whatever_order_each_has_its_name(
    order: list[str], gone: set[str], most: int
) -> None:
    alone = {
        (each.server, str(each.tool["name"])): each.name
        for server, tools in servers(30).items()
        for each in chosen(offered(server, tools), most=1000).listed
    }
    there = [offered(name, servers(30)[name]) for name in order if name not in gone]
    found = chosen(*there, most=most)
    assert {name: alone[whose] for name, whose in found.known.items()} == {
        name: name for name in found.known
    }
    assert len(found.listed) == min(most, sum(len(each.tools) for each in there))
    places = [order.index(each.server) for each in found.listed]
    assert places == sorted(places)
