from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from effort import effort
from emceepee_trio.model.json.intake import Steps, finished
from emceepee_trio.model.protocol.levels import LEVELS, at_least
from emceepee_trio.model.wire import dumps, timestamp
from emceepee_trio.session.buffers import SERVERS, Buffers, LogEntry, NotificationEntry, cut
from strategies import json_values

seconds = count()


def buffers(notifications: int = 3, logs: int = 3, log_bytes: int = 1000) -> Buffers:
    return Buffers(notifications, logs, log_bytes)


def heard(server: str, method: str = "m") -> NotificationEntry:
    return NotificationEntry(server, method, None, timestamp(next(seconds)))


def logged(
    server: str, data: object = "x", level: str = "info", source: str = "stderr"
) -> LogEntry:
    return LogEntry(server, source, level, None, data, timestamp(next(seconds)))


def everything(_: LogEntry) -> bool:
    return True


def test_notifications_are_taken_once_oldest_first_over_all_servers() -> None:
    kept = buffers()
    all_of_them = [heard("a"), heard("b"), heard("a")]
    for notification in all_of_them:
        kept.hear(notification)
    assert kept.take_notifications(None, 2) == all_of_them[:2]
    assert kept.take_notifications(None, None) == all_of_them[2:]
    assert kept.take_notifications(None, None) == []


def test_notifications_of_one_server_leave_those_of_others() -> None:
    kept = buffers()
    of_a, of_b = heard("a"), heard("b")
    kept.hear(of_a)
    kept.hear(of_b)
    assert kept.take_notifications("b", None) == [of_b]
    assert kept.take_notifications("c", None) == []
    assert kept.take_notifications("a", None) == [of_a]


def test_equal_notifications_are_not_one() -> None:
    kept = buffers()
    twice = heard("a")
    kept.hear(twice)
    kept.hear(NotificationEntry("a", "m", None, twice.timestamp))
    assert len(kept.take_notifications("a", 1)) == 1
    assert len(kept.take_notifications("a", None)) == 1


def test_of_each_server_the_newest_notifications_are_kept() -> None:
    kept = buffers(notifications=3)
    noise = [heard("noisy", str(n)) for n in range(10)]
    quiet = heard("quiet")
    for notification in [quiet, *noise]:
        kept.hear(notification)
    assert kept.take_notifications(None, None) == [*noise[7:], quiet]


def large(server: str, size: int = 300 * 1024) -> NotificationEntry:
    return NotificationEntry(server, "m", {"text": "x" * size}, timestamp(next(seconds)))


def test_large_notifications_make_room_for_newer_ones() -> None:
    kept = buffers(notifications=100)
    noise = [large("noisy") for _ in range(10)]
    quiet = [heard("quiet") for _ in range(5)]
    for notification in noise + quiet:
        kept.hear(notification)
    # Three of them are less than a MiB.
    assert kept.take_notifications(None, None) == noise[7:] + quiet


def test_room_that_was_taken_is_room_again() -> None:
    kept = buffers(notifications=100)
    for _ in range(3):
        kept.hear(large("a"))
    (first,) = kept.take_notifications("a", 1)
    later = large("a")
    kept.hear(later)
    found = kept.take_notifications("a", None)
    assert first not in found
    assert (len(found), found[-1]) == (3, later)
    for _ in range(3):
        kept.hear(large("a"))
    assert len(kept.take_notifications("a", None)) == 3


def test_the_newest_notification_stays_however_large() -> None:
    kept = buffers(notifications=100)
    huge = large("a", 2 * 1024 * 1024)
    kept.hear(heard("a"))
    kept.hear(huge)
    assert kept.take_notifications("a", None) == [huge]
    after = heard("a")
    kept.hear(after)
    assert kept.take_notifications("a", None) == [after]


def test_the_newest_logs_come_oldest_first() -> None:
    kept = buffers(logs=10)
    entries = [logged("ab"[n % 2], str(n)) for n in range(6)]
    for entry in entries:
        kept.log(entry)
    assert finished(kept.take_logs(everything, None, 4, clear=False)) == (entries[2:], 0, 0)
    assert finished(kept.take_logs(everything, "a", 10, clear=False)) == (entries[::2], 0, 0)


def test_clearing_forgets_what_matched_also_what_did_not_fit_and_counts_it() -> None:
    kept = buffers(logs=10)
    for n in range(6):
        kept.log(logged("a", str(n)))
    kept.log(logged("a", "other", source="stdout"))
    found, dropped, _ = finished(
        kept.take_logs(lambda e: e.source == "stderr", None, 2, clear=True)
    )
    assert ([entry.data for entry in found], dropped) == (["4", "5"], 4)
    found, dropped, _ = finished(kept.take_logs(everything, None, 10, clear=True))
    assert ([entry.data for entry in found], dropped) == (["other"], 0)


def test_logs_for_which_there_is_no_room_stay_for_the_next_page() -> None:
    for clear in (True, False):
        kept = buffers(logs=20)
        for n in range(12):
            kept.log(logged("ab"[n % 2], f"{n:02}" + "x" * 1000))
        seen: list[str] = []
        until, but = None, 0
        while True:
            steps = kept.take_logs(
                everything, None, 10, clear=clear, room=4000, until=until, but=but
            )
            found, dropped, more = finished(steps)
            seen = [entry.data[:2] for entry in found] + seen
            # What is beyond the limit is forgotten with the first page, and only then.
            assert dropped == (2 if clear and len(seen) == 3 else 0)
            if not more:
                break
            until, but = found[0].timestamp, 0 if clear else 1
            if not clear and len(seen) == 9:
                break  # each page has ten to choose from, and so they go on to the oldest
        assert seen == [f"{n:02}" for n in range(12)][-len(seen) :]
        assert len(seen) == (10 if clear else 9)


def test_logs_that_had_to_go_are_counted_until_told() -> None:
    kept = buffers(logs=3)
    for n in range(5):
        kept.log(logged("a", str(n)))
    kept.log(logged("b"))
    assert finished(kept.take_logs(everything, "b", 10, clear=False))[1] == 0
    assert finished(kept.take_logs(everything, None, 10, clear=False))[1] == 2
    assert finished(kept.take_logs(everything, "a", 10, clear=True))[1] == 2
    assert finished(kept.take_logs(everything, None, 10, clear=True))[1] == 0


def test_a_long_line_is_cut_and_marked() -> None:
    kept = buffers(log_bytes=10)
    kept.log(logged("a", "0123456789"))
    kept.log(logged("a", "0123456789A"))
    found, _, _ = finished(kept.take_logs(everything, "a", 10, clear=True))
    assert [entry.data for entry in found] == ["0123456789", "0123456789…"]


@given(json_values, st.integers(1, 50))
def test_what_is_cut_is_its_beginning_and_what_fits_stays_as_it_came(
    data: object, limit: int
) -> None:
    shown = cut(data, limit)
    written = data if isinstance(data, str) else dumps(data)
    if len(written.encode()) <= limit:
        assert shown is data
    else:
        assert shown.endswith("…")
        assert written.startswith(shown[:-1])
        assert len(shown[:-1].encode()) <= limit


def test_half_a_surrogate_pair_can_be_logged() -> None:
    assert cut("\ud800" * 3, 10) == "\ud800" * 3
    assert cut("\ud800" * 30, 10).endswith("…")


def test_the_tail_of_a_source_forgets_nothing() -> None:
    kept = buffers(logs=10)
    for n in range(4):
        kept.log(logged("a", str(n), source=("stderr", "stdout")[n % 2]))
    assert kept.tail("a", "stderr", 5) == ["0", "2"]
    assert kept.tail("a", "stderr", 1) == ["2"]
    assert kept.tail("nobody", "stderr", 5) == []
    assert len(finished(kept.take_logs(everything, "a", 10, clear=True))[0]) == 4


def test_levels_are_ordered_and_an_unknown_one_counts_as_info() -> None:
    for index, floor in enumerate(LEVELS):
        assert [level for level in LEVELS if at_least(floor)(level)] == list(LEVELS[index:])
    assert at_least("info")("verbose")
    assert not at_least("notice")("verbose")


def test_of_too_many_servers_the_one_that_was_silent_longest_makes_room() -> None:
    kept = buffers(logs=1)
    for n in range(SERVERS):
        kept.log(logged(f"s{n}"))
        kept.hear(heard(f"s{n}"))
    kept.log(logged("s0"))  # not silent any more; and one line had to go
    kept.hear(heard("s0"))
    kept.log(logged("new"))
    kept.hear(heard("new"))
    assert len(kept._logged) == len(kept._heard) == SERVERS
    assert kept.tail("s0", "stderr", 1) == ["x"]
    assert kept.tail("s1", "stderr", 1) == []
    assert len(kept.take_notifications("s0", None)) == 2
    assert kept.take_notifications("s1", None) == []


def test_nothing_grows_with_the_number_of_servers_ever_heard_of() -> None:
    kept = buffers(logs=1)
    for n in range(SERVERS * 3):
        for _ in range(3):
            kept.log(logged(f"s{n}"))
            kept.hear(heard(f"s{n}"))
    assert len(kept._logged) == len(kept._heard) == SERVERS
    assert len(kept._dropped) <= SERVERS


def test_however_many_servers_have_said_something_others_have_their_turn() -> None:
    kept = buffers(logs=100)
    for _ in range(100):
        for n in range(SERVERS):
            kept.log(logged(str(n)))
    for clear in (False, True):
        steps = kept.take_logs(everything, None, 50, clear=clear)
        efforts: list[int] = []
        found: list[LogEntry] = []

        def step(
            steps: Steps[tuple[list[LogEntry], int, int]] = steps,
            found: list[LogEntry] = found,
        ) -> None:
            try:
                next(steps)
            except StopIteration as end:
                found += end.value[0]

        while not found:
            efforts.append(effort(step))
        assert [entry.server for entry in found] == [str(n) for n in range(SERVERS)][-50:]
        assert max(efforts) < 6000
