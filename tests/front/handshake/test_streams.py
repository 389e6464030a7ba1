from __future__ import annotations

import json
import logging

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from effort import effort
from emceepee_trio.front.handshake.readers import only_answer, until_quick
from emceepee_trio.front.handshake.stream import Stream, StreamReader
from emceepee_trio.front.handshake.streams import KEPT, WRITER_PATIENCE, Streams, UnknownStream
from emceepee_trio.journal import Journal, Reader
from emceepee_trio.logs.facts import LINES, tell
from replay import Replay


async def read(reader: StreamReader, count: int) -> list[str]:
    """The next *count* messages, as a connection takes them."""
    found = []
    with trio.fail_after(60):
        for _ in range(count):
            entry = await reader.next()
            assert entry is not None
            found.append(entry.data)
            reader.took(entry)
    return found


async def ends(reader: StreamReader) -> bool:
    with trio.fail_after(60):
        return await reader.next() is None


def fill(streams: Streams, stream: Stream, *texts: str) -> None:
    for text in texts:
        streams.add(stream, text)


async def test_none_shows_all_others() -> None:
    """That is what a failing test does with each: a thousand would be a million."""
    streams = Streams("s")
    stream = [streams.new() for _ in range(1000)][-1]
    for each in (streams, stream, streams._line):
        assert len(repr(each)) < 1000


async def test_what_was_missed_and_what_is_new_are_one_sequence() -> None:
    streams = Streams("s")
    stream = streams.new()
    fill(streams, stream, "a", "b")
    reader = streams.resume(stream.event_id(1))
    assert await read(reader, 1) == ["b"]
    async with trio.open_nursery() as nursery:

        async def rest() -> None:
            assert await read(reader, 2) == ["c", "d"]
            assert await ends(reader)

        nursery.start_soon(rest)
        await wait_all_tasks_blocked()
        fill(streams, stream, "c")
        await wait_all_tasks_blocked()
        fill(streams, stream, "d")
        streams.finish(stream)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_pause_sends_its_reader_away_once_it_can_come_again(is_known: bool) -> None:
    streams = Streams("s")
    stream = streams.new()
    reader = stream.open_reader()
    fill(streams, stream, "a")
    if is_known:
        assert await read(reader, 1) == ["a"]
    stream.pause()
    assert stream.is_open
    if not is_known:
        assert reader.is_current
        stream.known()
    assert await ends(reader)
    fill(streams, stream, "b")
    streams.finish(stream)
    again = streams.resume(stream.event_id(1 if is_known else 0))
    assert await read(again, 1 if is_known else 2) == (["b"] if is_known else ["a", "b"])
    assert await ends(again)


async def test_an_answer_to_be_read_as_a_stream_is_not_quick() -> None:
    streams = Streams("s")
    for opened in (True, False):
        stream = streams.new()
        if opened:
            stream.open()
        streams.add(stream, "a", is_answer=True)
        streams.finish(stream)
        await until_quick(stream)
        assert (only_answer(stream) is None) == opened


async def test_an_older_reader_ends_when_another_takes_over_and_counts_no_more() -> None:
    streams = Streams("s")
    fill(streams, streams.standalone, "a", "b", "c")
    ghost = streams.standalone.open_reader()
    assert await read(ghost, 1) == ["a"]
    in_its_hands = await ghost.next()
    assert in_its_hands is not None
    reader = streams.standalone.open_reader()
    assert await read(reader, 2) == ["b", "c"]
    ghost.took(in_its_hands)
    assert streams.standalone.taken == 3
    assert await ends(ghost)
    ghost.close()
    assert streams.standalone.has_reader


async def test_without_an_id_reading_goes_on_behind_what_was_taken() -> None:
    streams = Streams("s")
    fill(streams, streams.standalone, "a", "b", "c")
    first = streams.standalone.open_reader()
    assert await read(first, 2) == ["a", "b"]
    first.close()
    assert await read(streams.standalone.open_reader(), 1) == ["c"]


async def test_a_client_that_comes_back_for_less_than_was_written_gets_the_rest_again() -> None:
    streams = Streams("s")
    fill(streams, streams.standalone, "a", "b", "c")
    first = streams.standalone.open_reader()
    assert await read(first, 3) == ["a", "b", "c"]
    second = streams.resume(streams.standalone.event_id(1))
    assert await read(second, 1) == ["b"]
    second.close()
    # Also when it comes back without an id: it has told us what it has.
    assert await read(streams.standalone.open_reader(), 1) == ["c"]


@pytest.mark.parametrize(
    "last_event_id",
    [
        "",
        ".",
        "nonsense",
        "{0}",
        "{0}.",
        "{0}.-1",
        "{0}.x",
        "{0}.2",
        "{0}.²",
        ".1",
        "{0}." + "1" * 5000,
    ],
)
def test_an_id_that_is_none_of_ours_is_unknown(last_event_id: str) -> None:
    async def main() -> None:
        streams = Streams("s")
        stream = streams.new()
        fill(streams, stream, "a")
        with pytest.raises(UnknownStream):
            streams.resume(last_event_id.format(stream.id))
        assert await read(streams.resume(f"{stream.id}.0"), 1) == ["a"]

    trio.run(main)


async def test_of_unread_messages_the_oldest_go_first_and_answers_last() -> None:
    streams = Streams("s", keep=3)
    post, other = streams.new(), streams.new()
    streams.add(post, "answer", is_answer=True)
    fill(streams, other, "old")
    fill(streams, streams.standalone, "new")
    assert streams.evicted == 0
    fill(streams, streams.standalone, "newer")
    await streams.wait_for_room()
    assert streams.evicted == 1
    assert not other.entries
    fill(streams, other, "newest")
    await streams.wait_for_room()
    assert await read(post.open_reader(), 1) == ["answer"]
    assert await read(streams.standalone.open_reader(), 1) == ["newer"]
    assert await read(streams.resume(other.event_id(1)), 1) == ["newest"]
    assert streams.evicted == 2


async def test_what_was_read_makes_room_first_and_counts_only_if_it_is_asked_for_again() -> None:
    streams = Streams("s", keep=2)
    fill(streams, streams.standalone, "a", "b")
    reader = streams.standalone.open_reader()
    assert await read(reader, 2) == ["a", "b"]
    fill(streams, streams.standalone, "c")
    await streams.wait_for_room()
    assert streams.evicted == 0
    again = streams.resume(streams.standalone.event_id(0))
    assert await read(again, 2) == ["b", "c"]
    assert streams.evicted == 1


async def test_an_evicted_id_still_names_its_stream() -> None:
    streams = Streams("s", keep=2)
    fill(streams, streams.standalone, *"abcd")
    await streams.wait_for_room()
    assert streams.evicted == 2
    assert await read(streams.resume(streams.standalone.event_id(1)), 2) == ["c", "d"]
    assert streams.evicted == 2  # "b" once, not twice


async def test_who_comes_again_with_the_same_stale_id_has_lost_no_more_than_before() -> None:
    streams = Streams("s", keep=2)
    old = streams.standalone.event_id(1)
    fill(streams, streams.standalone, *"abcd")
    await streams.wait_for_room()
    for _ in range(3):
        reader = streams.resume(old)
        assert await read(reader, 2) == ["c", "d"]
        assert streams.evicted == 2
    reader.close()
    fill(streams, streams.standalone, "e")
    await streams.wait_for_room()  # by which "c" goes, which was read
    for _ in range(3):
        assert await read(streams.resume(old), 2) == ["d", "e"]
        assert streams.evicted == 3


async def test_the_bound_counts_bytes_too_but_the_newest_message_stays() -> None:
    streams = Streams("s", keep_bytes=10)
    fill(streams, streams.standalone, "x" * 8, "y" * 100)
    await streams.wait_for_room()
    assert await read(streams.standalone.open_reader(), 1) == ["y" * 100]
    assert streams.evicted == 1


async def test_a_writer_waits_for_a_live_reader_and_goes_on_as_soon_as_it_reads(
    autojump_clock: MockClock,
) -> None:
    streams = Streams("s", keep=2)
    reader = streams.standalone.open_reader()
    fill(streams, streams.standalone, "a", "b", "c")
    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(streams.wait_for_room)
        await trio.sleep(WRITER_PATIENCE - 1)
        assert nursery.child_tasks
        assert await read(reader, 3) == ["a", "b", "c"]
    assert trio.current_time() == started + WRITER_PATIENCE - 1
    assert streams.evicted == 0


async def test_a_writer_goes_on_as_soon_as_the_reader_is_gone(autojump_clock: MockClock) -> None:
    streams = Streams("s", keep=2)
    reader = streams.standalone.open_reader()
    fill(streams, streams.standalone, "a", "b", "c")
    started = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(streams.wait_for_room)
        await wait_all_tasks_blocked()
        reader.close()
    assert trio.current_time() == started
    assert streams.evicted == 1


async def test_after_its_patience_only_the_slowest_reader_is_dropped(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "emceepee_trio")
    streams = Streams("s", keep=3)
    slow, quick = streams.new(), streams.new()
    slow_reader, quick_reader = slow.open_reader(), quick.open_reader()
    fill(streams, slow, "a", "b", "c")
    with trio.fail_after(10 * WRITER_PATIENCE):
        async with trio.open_nursery() as nursery:
            fill(streams, quick, "d")
            nursery.start_soon(streams.wait_for_room)
            await trio.sleep(WRITER_PATIENCE - 1)
            fill(streams, quick, "e")
    assert not slow_reader.is_current
    assert quick_reader.is_current
    assert await read(quick_reader, 2) == ["d", "e"]
    assert await ends(slow_reader)
    assert [r.getMessage() for r in caplog.records].count("slow_reader_dropped") == 1


async def test_messages_are_in_order_whatever_becomes_of_their_writers(
    autojump_clock: MockClock,
) -> None:
    streams = Streams("s", keep=1)
    reader = streams.standalone.open_reader()

    async def say(text: str) -> None:
        fill(streams, streams.standalone, text)
        await streams.wait_for_room()

    async with trio.open_nursery() as nursery:
        for text in "abcd":
            nursery.start_soon(say, text)
            await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel("writers are gone")
    assert await read(reader, 4) == list("abcd")


async def test_an_answer_is_kept_for_five_minutes(autojump_clock: MockClock) -> None:
    streams = Streams("s")
    stream = streams.new()
    streams.add(stream, "answer", is_answer=True)
    streams.finish(stream)
    await trio.sleep(KEPT - 1)
    streams.new()
    reader = streams.resume(stream.event_id(0))
    assert await read(reader, 1) == ["answer"]
    assert await ends(reader)
    await trio.sleep(2)
    streams.new()
    with pytest.raises(UnknownStream):
        streams.resume(stream.event_id(0))


async def test_a_finished_stream_with_nothing_in_it_is_forgotten() -> None:
    streams = Streams("s")
    stream = streams.new()
    reader = stream.open_reader()
    streams.finish(stream)
    assert await ends(reader)
    with pytest.raises(UnknownStream):
        streams.resume(stream.event_id(0))


async def test_a_reader_that_waits_learns_of_the_end() -> None:
    streams = Streams("s")
    stream = streams.new()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ends, stream.open_reader())
        await wait_all_tasks_blocked()
        streams.finish(stream)


async def test_what_is_discarded_takes_no_room() -> None:
    streams = Streams("s", keep=2, keep_bytes=10)
    for _ in range(5):
        stream = streams.new()
        streams.add(stream, "x" * 10, is_answer=True)
        streams.finish(stream)
        streams.discard(stream)
    fill(streams, streams.standalone, "a" * 5, "b" * 5)
    await streams.wait_for_room()
    assert await read(streams.standalone.open_reader(), 2) == ["a" * 5, "b" * 5]
    assert streams.evicted == 0


async def test_who_starts_over_finds_all_unread_in_the_standalone_stream_but_answers() -> None:
    streams = Streams("s")
    one, two = streams.new(), streams.new()
    reader = one.open_reader()
    fill(streams, one, "read")
    assert await read(reader, 1) == ["read"]
    fill(streams, two, "a")
    fill(streams, one, "b")
    fill(streams, streams.standalone, "before")
    fill(streams, two, "c")
    streams.add(two, "answer", is_answer=True)
    streams.start_over()
    fill(streams, streams.standalone, "after")
    assert await ends(reader)
    new = streams.standalone.open_reader()
    assert await read(new, 5) == ["before", "a", "b", "c", "after"]
    answers = streams.resume(two.event_id(0))
    assert await read(answers, 1) == ["answer"]
    assert await ends(answers)
    assert streams.evicted == 0


async def test_who_starts_over_has_no_reader_of_the_standalone_stream_any_more() -> None:
    streams = Streams("s")
    ghost = streams.standalone.open_reader()
    streams.start_over()
    fill(streams, streams.standalone, "a")
    assert await ends(ghost)
    assert await read(streams.standalone.open_reader(), 1) == ["a"]


async def test_evictions_are_logged_as_they_double(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "emceepee_trio")
    journal = Journal()
    journal.add(Reader("log", tell, LINES))
    streams = Streams("s", keep=1, journal=journal)
    for n in range(1, 10):
        fill(streams, streams.standalone, json.dumps(n))
        await streams.wait_for_room()
    logged = [r.fields["evicted"] for r in caplog.records if r.message == "stream_eviction"]  # type: ignore[attr-defined]  # logs.py puts it there
    assert logged == [1, 2, 4, 8]


async def test_what_becomes_of_a_stream_is_noted() -> None:
    journal, replay = Journal(), Replay()
    replay.reads(journal)
    streams = Streams("s", keep=1, journal=journal)
    stream = streams.new()
    assert replay.streams == {streams.standalone.id, stream.id}
    for text in "abc":
        fill(streams, stream, text)
        await streams.wait_for_room()
    streams.resume(stream.event_id(0))
    replay.check()
    assert replay.evicted == {"s": streams.evicted} == {"s": 2}
    assert [type(fact).__name__ for fact in replay.noted[-3:]] == [
        "StreamEvicted",
        "StreamEvicted",
        "StreamResumed",
    ]


async def test_no_message_is_dearer_for_what_is_kept() -> None:
    def of_a_message(kept: int) -> int:
        streams = Streams("s", keep=2 * kept)
        reader = streams.standalone.open_reader()
        for number in range(kept):
            fill(streams, streams.standalone, "read")
            reader.took(streams.standalone.entries[-1])
            stream = streams.new()
            streams.add(stream, f"{number}", is_answer=True)
            streams.finish(stream)

        def all_that_can_happen() -> None:
            fill(streams, streams.standalone, "news")
            entry = streams.standalone.after(reader.cursor)
            assert entry is not None
            reader.took(entry)
            assert streams.make_room()
            other = streams.new()
            streams.add(other, "more")
            assert streams.make_room()
            other.drop_reader()
            streams.abandon(other)
            streams.add(other, "answer", is_answer=True)
            streams.finish(other)
            assert streams.make_room()
            assert streams.next_due() is None
            streams.sweep()

        return effort(all_that_can_happen)

    few = min(of_a_message(10) for _ in range(2))  # the first time prepares things for ever
    assert of_a_message(10_000) <= 1.05 * few + 20  # a few steps in what is halved again and again
