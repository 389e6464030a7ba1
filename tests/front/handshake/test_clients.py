"""Streams that outlive their connections: resuming them, taking them over."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from asgi_world import listening, open_world, speaking, texts
from emceepee_trio.front.handshake.streams import WRITER_PATIENCE


async def test_a_dropped_post_goes_on_from_any_earlier_id(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        exchange, speaker = await speaking(world, client, "k")
        for text in ("a", "b", "c"):
            await speaker.say(text)
        await exchange.message(2)
        exchange.drop()
        await wait_all_tasks_blocked()
        await speaker.say("d")
        speaker.answer("e")
        ids = [str(event.id) for event in exchange.events]
        for seen, last_event_id in enumerate(ids):
            rest = await client.get(last_event_id).complete()
            assert rest.primed
            assert texts(rest.messages) == ["a", "b", "c", "d", "e"][seen:]
            assert rest.events[0].id == last_event_id


async def test_a_resumed_stream_is_followed_live(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        exchange, speaker = await speaking(world, client, "k")
        exchange.drop()
        resumed = await listening(client, exchange.events[0].id)
        await speaker.say("a")
        assert texts([await resumed.message()]) == ["a"]
        speaker.answer("b")
        assert texts((await resumed.complete()).messages) == ["a", "b"]


async def test_to_resume_a_post_ends_the_connection_it_had(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        exchange, speaker = await speaking(world, client, "k")
        await speaker.say("a")
        await exchange.message()
        resumed = await listening(client, exchange.events[-1].id)
        await exchange.complete()
        speaker.answer("b")
        assert texts((await resumed.complete()).messages) == ["b"]
        assert texts(exchange.messages) == ["a"]


async def test_messages_stay_in_their_own_streams(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        stream = await listening(client)
        one, first = await speaking(world, client, "1")
        two, second = await speaking(world, client, "2")
        await first.say("a")
        await second.say("b")
        await first.say("c", standalone=True)
        first.answer("d")
        second.answer("e")
        assert texts((await one.complete()).messages) == ["a", "d"]
        assert texts((await two.complete()).messages) == ["b", "e"]
        assert texts(stream.messages) == ["c"]


async def test_what_nobody_listens_to_waits_for_somebody(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        _, speaker = await speaking(world, client, "k")
        await speaker.say("a", standalone=True)
        stream = await listening(client)
        assert texts(stream.messages) == ["a"]
        stream.drop()
        await wait_all_tasks_blocked()
        await speaker.say("b", standalone=True)
        assert texts((await listening(client)).messages) == ["b"]
        assert texts((await listening(client, stream.events[0].id)).messages) == ["a", "b"]


async def test_an_id_of_another_session_is_refused(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client, other = await world.joined(), await world.joined()
        exchange, speaker = await speaking(world, client, "k")
        await speaker.say("secret")
        exchange.drop()
        for event in exchange.events:
            assert (await other.get(event.id).error())[0] == 400


async def test_evicted_ids_go_on_from_what_is_kept_and_that_is_counted(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        client.own.streams.keep = 3
        exchange, speaker = await speaking(world, client, "k")
        exchange.drop()
        await wait_all_tasks_blocked()
        for text in "abcde":
            await speaker.say(text)
        assert client.own.streams.evicted == 2
        resumed = await listening(client, exchange.events[0].id)
        assert texts(resumed.messages) == ["c", "d", "e"]
        assert client.own.streams.evicted == 2


async def test_a_second_get_takes_the_stream_over(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        _, speaker = await speaking(world, client, "k")
        first = await listening(client)
        await speaker.say("a", standalone=True)
        await first.message()
        second = await listening(client)
        await first.complete()
        await speaker.say("b", standalone=True)
        assert texts([await second.message()]) == ["b"]
        third = await listening(client, first.events[0].id)
        assert texts(third.messages) == ["a", "b"]


@pytest.mark.parametrize("ghost", [False, True])
async def test_a_take_over_does_not_wait_for_a_reader_that_does_not_read(
    ghost: bool, autojump_clock: MockClock
) -> None:
    async with open_world() as world:
        client = await world.joined()
        _, speaker = await speaking(world, client, "k")
        first = await listening(client)
        first.stop_reading(ghost=ghost)
        await speaker.say("a", standalone=True)
        await wait_all_tasks_blocked()
        started = trio.current_time()
        second = await listening(client)
        assert trio.current_time() == started
        assert texts(second.messages) == ["a"]
        first.drop()
        await wait_all_tasks_blocked()
        await speaker.say("b", standalone=True)
        await wait_all_tasks_blocked()
        assert texts(second.messages) == ["a", "b"]


async def test_what_a_live_reader_has_not_read_is_not_evicted(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        client = await world.joined()
        client.own.streams.keep = 3
        exchange, speaker = await speaking(world, client, "k")
        exchange.stop_reading()
        async with trio.open_nursery() as nursery:
            for text in "abcde":
                nursery.start_soon(speaker.say, text)
                await wait_all_tasks_blocked()
            await trio.sleep(WRITER_PATIENCE / 2)
            exchange.read_on()
        await wait_all_tasks_blocked()
        assert texts(exchange.messages) == list("abcde")
        assert client.own.streams.evicted == 0


async def test_a_reader_that_holds_up_its_writers_too_long_is_dropped(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        client = await world.joined()
        client.own.streams.keep = 3
        exchange, speaker = await speaking(world, client, "k")
        exchange.stop_reading()
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            for text in "abcde":
                nursery.start_soon(speaker.say, text)
                await wait_all_tasks_blocked()
        assert trio.current_time() == started + WRITER_PATIENCE
        exchange.drop()
        resumed = await listening(client, exchange.events[0].id)
        assert texts(resumed.messages) == ["c", "d", "e"]
        assert client.own.streams.evicted == 2


@pytest.mark.parametrize("request_id", [0, 7, "7", "", "k"], ids=repr)
async def test_a_request_has_the_id_that_its_client_gave_it(
    request_id: int | str, autojump_clock: MockClock
) -> None:
    async with open_world() as world:
        client = await world.joined()
        exchange = client.request("test/speak", request_id, key="k")
        speaker = await world.speaker("k")
        await speaker.say("a")
        twice = client.request("ping", request_id)
        assert (await twice.error())[0] == 400
        assert texts([await exchange.message()]) == ["a"]
        speaker.answer("b")
        assert (await exchange.answer())["id"] == request_id
        assert (await client.request("ping", request_id).answer())["id"] == request_id
        await client.cancel(request_id).complete()
        other = client.request("test/speak", request_id, key="other")
        await world.speaker("other")
        await client.cancel(request_id).complete()
        await other.complete()
        assert other.messages == []
