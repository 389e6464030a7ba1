"""A piece of time as a picture has it: shares of a width, round times, what is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.timeline.rows import Row, Span
from emceepee_trio.model.timeline.window import (
    BUCKETS,
    LEAST,
    SHORTEST,
    TICKS,
    Filter,
    Window,
    after,
    overview,
)

moments = st.floats(0, 1e6)
windows = st.builds(lambda at, length: Window(at, at + length), moments, st.floats(0.001, 1e6))


def row(begins: float = 0, ends: float | None = None, **how: str) -> Row:
    said = {"kind": "call", "id": "c", "server": "git", "name": "log"} | how
    made = Row(said["kind"], said["id"], said["server"], said["name"], begins)  # type: ignore[arg-type]  # of a test
    made.ends = ends
    made.outcome = how.get("outcome", "completed")
    made.spans = [Span("server", begins, ends)]
    return made


@given(window=windows, begins=moments, length=st.floats(0, 1e5))
def test_a_bar_is_inside_and_never_invisible(window: Window, begins: float, length: float) -> None:
    bar = window.bar(begins, begins + length)
    if bar is None:
        assert not window.shows(row(begins, begins + length))
        return
    x, width = bar
    assert 0 <= x <= 100 - LEAST + 0.001
    assert LEAST <= width <= 100
    assert x + width <= 100.001


@given(window=windows, since=moments)
def test_ticks_are_inside_in_order_few_and_differ(window: Window, since: float) -> None:
    ticks = window.ticks(since)
    assert len(ticks) <= TICKS + 1
    places = [place for place, _ in ticks]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    said = [said for _, said in ticks]
    assert len(said) == len({*said})


@pytest.mark.parametrize(
    ("length", "said"),
    [
        (0.0007, ["0.0 ms", "0.1 ms", "0.2 ms", "0.3 ms", "0.4 ms", "0.5 ms", "0.6 ms", "0.7 ms"]),
        (0.5, ["0 ms", "100 ms", "200 ms", "300 ms", "400 ms", "500 ms"]),
        (1, ["0 ms", "200 ms", "400 ms", "600 ms", "800 ms", "1.0 s"]),
        (10, ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s"]),
        (90, ["0 s", "15 s", "30 s", "45 s", "1:00", "1:15", "1:30"]),
        (3600, ["0 s", "10:00", "20:00", "30:00", "40:00", "50:00", "1:00:00"]),
    ],
)
def test_what_ticks_say(length: float, said: list[str]) -> None:
    assert [text for _, text in Window(100, 100 + length).ticks(100)] == said


def test_times_between_minutes_have_the_digits_of_their_step() -> None:
    assert after(61.5, 0.5) == "1:01.5"
    assert after(3661, 1) == "1:01:01"
    assert after(-2, 1) == "-2 s"


@given(window=windows, times=st.sampled_from([0.25, 0.5, 2, 4]), whole=windows)
def test_who_zooms_stays_within_the_whole(window: Window, times: float, whole: Window) -> None:
    seen = window.zoomed(times).within(whole)
    assert whole.begins <= seen.begins < seen.ends
    assert seen.length >= SHORTEST * 0.9
    assert seen.ends <= whole.ends + SHORTEST


def test_who_moves_sees_as_much_as_before() -> None:
    assert Window(10, 20).moved(0.5) == Window(15, 25)


def test_what_goes_on_is_in_every_later_window() -> None:
    assert Window(50, 60).shows(row(0))
    assert not Window(50, 60).shows(row(0, 49))
    assert not Window(50, 60).shows(row(61))


@pytest.mark.parametrize(
    ("filter_", "fits"),
    [
        (Filter(), True),
        (Filter(servers=frozenset({"git", "files"})), True),
        (Filter(servers=frozenset({"files"})), False),
        (Filter(tools=frozenset({"log"})), True),
        (Filter(kinds=frozenset({"connection"})), False),
        (Filter(outcomes=frozenset({"failed"})), False),
        (Filter(servers=frozenset({"git"}), outcomes=frozenset({"completed"})), True),
    ],
)
def test_rows_are_chosen_by_what_they_are_of(filter_: Filter, fits: bool) -> None:
    assert filter_.takes(row()) is fits


def test_a_connection_is_no_tool_of_its_name() -> None:
    assert not Filter(tools=frozenset({"log"})).takes(row(kind="connection"))


@given(begins=st.lists(st.floats(0, 3600), max_size=50))
def test_the_overview_counts_every_row_once(begins: list[float]) -> None:
    rows = [row(at, at, outcome="failed" if at > 1800 else "completed") for at in begins]
    buckets = overview(rows, Window(0, 3600))
    assert len(buckets) == BUCKETS
    assert sum(bucket.count for bucket in buckets) == len(rows)
    assert sum(bucket.failed for bucket in buckets) == len([at for at in begins if at > 1800])
    assert [b.ends for b in buckets[:-1]] == pytest.approx([b.begins for b in buckets[1:]])
