"""Whose turn it is to start."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

import attrs

from emceepee_trio.backend.children.starts import Place, Starts, cores


@attrs.define(eq=False)
class Here:
    starts: Starts
    stack: ExitStack
    places: dict[str, Place] = attrs.field(factory=dict)
    wanted: set[str] = attrs.field(factory=set)

    def wants(self, *names: str) -> None:
        for name in names:  # the first letter is the owner
            place = self.starts.place(name[0], partial(self.is_wanted, name))
            self.places[name] = self.stack.enter_context(place)

    def is_wanted(self, name: str) -> bool:
        return name in self.wanted

    def in_order(self) -> list[str]:
        """Who has turns, one after the other, each as soon as the one before is done."""
        order = []
        while begun := [name for name, place in self.places.items() if place.granted.is_set()]:
            (name,) = begun
            order.append(name)
            self.places.pop(name).give_back()
        return order


def test_there_is_a_place_for_each_core() -> None:
    assert Starts().most == cores() >= 1


def test_owners_take_turns() -> None:
    with ExitStack() as stack:
        here = Here(Starts(1), stack)
        here.wants("a1", "a2", "a3", "b1", "b2", "c1")
        assert here.in_order() == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_what_somebody_waits_for_comes_first_among_those_of_its_owner() -> None:
    with ExitStack() as stack:
        here = Here(Starts(1), stack)
        here.wants("a1", "a2", "a3", "b1", "b2")
        here.wanted = {"a3"}
        assert here.in_order() == ["a1", "b1", "a3", "b2", "a2"]


def test_a_place_goes_to_who_holds_the_fewest() -> None:
    with ExitStack() as stack:
        here = Here(Starts(2), stack)
        here.wants("a1", "a2", "a3", "b1")
        here.places["a2"].give_back()
        assert here.places["b1"].granted.is_set()
        assert not here.places["a3"].granted.is_set()


def test_who_gives_up_waiting_takes_no_turn_and_nothing_is_kept() -> None:
    starts = Starts(1)
    with ExitStack() as stack:
        here = Here(starts, stack)
        here.wants("a1", "a2", "a3")
        here.places.pop("a2").give_back()
        assert here.in_order() == ["a1", "a3"]
        assert starts.starting == 0
    assert not starts._waiting
    assert not starts._served


def test_a_place_is_given_back_once() -> None:
    with ExitStack() as stack:
        here = Here(Starts(1), stack)
        here.wants("a1", "a2", "a3")
        here.places["a1"].give_back()
        here.places["a1"].give_back()
        assert not here.places["a3"].granted.is_set()


def test_more_may_start_from_now_on() -> None:
    with ExitStack() as stack:
        here = Here(Starts(1), stack)
        here.wants("a1", "a2", "a3")
        here.starts.allow(2)
        assert here.places["a2"].granted.is_set()
        assert not here.places["a3"].granted.is_set()
