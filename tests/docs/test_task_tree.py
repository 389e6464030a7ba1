"""The tree of tasks that the documentation draws is the one that runs."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import trio
from trio.lowlevel import Task

from asgi_world import open_world
from emceepee_trio.config import Config, Server
from fake_backends import raw, until

pytestmark = pytest.mark.once

DOCS = Path(__file__).parents[2] / "docs"
GUARD = 60.0
ONE, BOTH = "one", "both"
"""Servers: of one session, and of all of a principal."""

Block: TypeAlias = Task | trio.Nursery

Edge: TypeAlias = tuple[str, str | None]
"""A thing, and what it lives in."""


def all_tasks() -> Iterator[Task]:
    left = [trio.lowlevel.current_task()]
    while left:
        task = left.pop()
        yield task
        left += [each for nursery in task.child_nurseries for each in nursery.child_tasks]


def called(name: str) -> Callable[[], Task]:
    """A task of that name, which may have an id behind it."""

    def find() -> Task:
        found = [task for task in all_tasks() if re.search(rf"(^|\.){name}( |$)", task.name)]
        assert found, name
        return found[0]

    return find


def around(find: Callable[[], Task]) -> Callable[[], Block]:
    """The nursery that it runs in."""

    def nursery() -> Block:
        found = find().parent_nursery
        assert found is not None
        return found

    return nursery


def within(find: Callable[[], Task]) -> Callable[[], Block]:
    """The one task that it has begun."""

    def task() -> Block:
        (only,) = [each for nursery in find().child_nurseries for each in nursery.child_tasks]
        return only

    return task


SESSION = called("session")
THINGS: Mapping[str, Callable[[], Block]] = {
    "the process": trio.lowlevel.current_task,
    "the reaper": around(called("reaper")),
    "shared connections": around(called(f"shared backend {BOTH}")),
    "a hub": called(f"shared backend {BOTH}"),
    "sessions": around(SESSION),
    "a session": SESSION,
    "a backend": called(f"backend {ONE} of"),
    "a request": called("HandshakeConnection._answer"),
    "a question": within(
        lambda: next(
            task for task in all_tasks() if task.name.endswith("._run_dispatcher") and _asks(task)
        )
    ),
    "inner nursery": lambda: SESSION().child_nurseries[1],
    "a call": called("call"),
    "a timer": called("timer"),
    "the sweeper": called("Sweeper.run"),
}


def _asks(dispatcher: Task) -> bool:
    return any(nursery.child_tasks for nursery in dispatcher.child_nurseries)


def lives_in(block: Block) -> Iterator[Block]:
    """From what is next around it to the task that looks."""
    while block is not trio.lowlevel.current_task():
        if isinstance(block, Task):
            assert block.parent_nursery is not None
            block = block.parent_nursery
        else:
            beside = block.parent_task.child_nurseries
            place = beside.index(block)
            block = beside[place - 1] if place else block.parent_task
        yield block


@asynccontextmanager
async def at_work() -> AsyncGenerator[None]:
    """One session in which there is one of each thing."""
    servers = (Server(ONE, **raw()), Server(BOTH, **raw(), scope="principal"))
    async with open_world(Config(servers=servers), GUARD) as world:
        client = await world.joined()
        await client.call("execute_tool", server=BOTH, tool="echo", args={"text": "hello"})
        await client.call("set_timer", duration_ms=3_600_000, message="later")
        await client.call("execute_tool", server=ONE, tool="string_id_question", args={})
        waiting = client.tool("execute_tool", server=BOTH, tool="never", timeout_ms=300_000)
        (session,) = world.manager.sessions()
        await until(lambda: [call for call in session.calls.under_way(BOTH) if call.is_sent])
        yield
        waiting.drop()


def drawn_for_users() -> list[Edge]:
    """Boxes in boxes: two spaces a level."""
    lines = _block("how-it-works.rst", ".. tree::")
    return _edges([(len(line) - len(line.lstrip()), line.partition(" |")[0]) for line in lines])


def drawn_for_developers() -> list[Edge]:
    """Lines of boxes: three columns a level."""
    lines = _block("architecture.rst", ".. code-block:: text")
    return _edges([(len(re.match(r"[ │├└─]*", line)[0]), line) for line in lines])  # type: ignore[index]  # it matches nothing, too


def _block(page: str, begin: str) -> list[str]:
    text = (DOCS / page).read_text("utf-8").partition("The task tree\n")[2]
    block = text.partition(f"{begin}\n\n")[2].partition("\n\n")[0]
    return block.splitlines()


def _edges(lines: list[tuple[int, str]]) -> list[Edge]:
    edges: list[Edge] = []
    path: list[tuple[int, str]] = []
    for depth, line in lines:
        said = line.strip(" │├└─")
        (name,) = [thing for thing in THINGS if re.match(rf"{thing}\b", said)]
        path = [each for each in path if each[0] < depth]
        edges.append((name, path[-1][1] if path else None))
        path.append((depth, name))
    return edges


@pytest.mark.parametrize("drawn", [drawn_for_users, drawn_for_developers])
async def test_each_thing_that_is_drawn_lives_in_what_it_is_drawn_in(
    drawn: Callable[[], list[Edge]],
) -> None:
    edges = drawn()
    async with at_work():
        blocks = {name: THINGS[name]() for name, _ in edges}
        names = {block: name for name, block in blocks.items()}
        lives = [
            (name, next((names[each] for each in lives_in(block) if each in names), None))
            for name, block in blocks.items()
        ]
    assert lives == edges


async def test_nothing_lives_in_a_session_that_is_not_drawn() -> None:
    """But for a second backend, which is a lease, and a second call."""
    drawn = {name for name, _ in drawn_for_developers()}
    assert drawn == THINGS.keys()
    async with at_work():
        known = {find() for find in THINGS.values()}
        there = {task for nursery in SESSION().child_nurseries for task in nursery.child_tasks}
        assert {task.name.split()[0] for task in there - known} == {"backend", "call"}
