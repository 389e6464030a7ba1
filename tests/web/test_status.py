"""What `/status` says of all sessions, of which there may be many."""

from __future__ import annotations

from trio.testing import wait_all_tasks_blocked

from emceepee_trio.config import Config, Server
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.web.status import status_of

SERVERS = tuple(Server(name, command="x", disabled=True) for name in ("one", "another"))


async def test_others_have_their_turn_between_two_sessions() -> None:
    async with open_sessions(Config(servers=SERVERS)) as manager:
        for name in ("a", "b", "c"):
            await manager.ensure(name, "ada")
        steps = status_of(manager, "ada")
        next(steps)
        # One that has ended meanwhile, and one that has come.
        manager.end(manager.sessions()[1], "over")
        await manager.ensure("d", "ada")
        await wait_all_tasks_blocked()
        count = 1
        while True:
            try:
                next(steps)
            except StopIteration as end:
                said = end.value
                break
            count += 1
        assert count == 3
        assert [session["session"] for session in said["sessions"]] == ["a", "b", "c"]
        assert [len(session["servers"]) for session in said["sessions"]] == [2, 0, 2]
        assert [server["name"] for server in said["servers"]] == ["one", "another"]
