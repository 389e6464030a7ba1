"""What servers have, kept in the state directory: written whole, read with care."""

from __future__ import annotations

import os
import stat
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from emceepee_trio.backend.catalogue import shelf
from emceepee_trio.backend.catalogue.memory import KEPT, KnownServer, Memory, Remembered
from emceepee_trio.backend.catalogue.shelf import FOLDER, KEY, open_memory
from emceepee_trio.backend.connections.client import Negotiated
from emceepee_trio.config import Server
from fake_backends import until

GUARD = 60.0
SERVER = Server("s", command="run", env={"TOKEN": "a very secret value"})
AGREED = Negotiated("2025-11-25", {"tools": {}}, {"name": "s"}, "Use it.")


def known(description: str = "digs", at: float | None = None, **private: Any) -> KnownServer:
    tools = [{"name": "dig", "description": description, "x-vendor": {"a": [1, None, "ü"]}}]
    at = time.time() if at is None else at
    return KnownServer(AGREED, {"tools": Remembered(tools, at, 200)}, at, 300, **private)


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged since we looked last."""
    found = list(caplog.messages)
    caplog.clear()
    return found


def name_in(memory: Memory) -> str:
    return memory.name(SERVER, "ada", None)


async def learned(state: Path, what: KnownServer) -> str:
    """By a daemon that has ended since."""
    async with open_memory(state) as memory:
        name = name_in(memory)
        memory.learn(name, what, "s")
    return name


async def recalled(state: Path) -> KnownServer | None:
    async with open_memory(state) as memory:
        return memory.recall(name_in(memory))


async def test_what_one_daemon_learns_the_next_one_knows(tmp_path: Path) -> None:
    what = known()
    name = await learned(tmp_path, what)
    found = await recalled(tmp_path)
    assert found is not None
    assert (found.negotiated, found.lists) == (AGREED, what.lists)
    folder = tmp_path / FOLDER
    assert sorted(path.name for path in folder.iterdir()) == sorted([f"{name}.json", KEY])
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_it_is_written_while_the_daemon_runs(tmp_path: Path) -> None:
    with trio.fail_after(GUARD):
        async with open_memory(tmp_path) as memory:
            name = name_in(memory)
            path = tmp_path / FOLDER / f"{name}.json"
            memory.learn(name, known(), "s")
            await until(path.exists)
            memory.learn(name, known("digs deep"), "s")
            await until(lambda: "digs deep" in path.read_text())
            memory.forget(name)
            await until(lambda: not path.exists())


async def test_values_of_variables_are_in_no_file(tmp_path: Path) -> None:
    await learned(tmp_path, known())
    everything = b"".join(path.read_bytes() for path in (tmp_path / FOLDER).iterdir())
    assert b"secret" not in everything
    (tmp_path / FOLDER / KEY).write_text("ab" * 32)
    assert await recalled(tmp_path) is None  # whose name is another one with that key


async def test_what_repeats_a_value_is_not_written(tmp_path: Path) -> None:
    said = 'a very "secret" välue'
    async with open_memory(tmp_path) as memory:
        name = name_in(memory)
        memory.learn(name, known(f"digs with {said}", private=("x", said)), "s")
        assert memory.recall(name) is not None
    assert await recalled(tmp_path) is None
    assert not list((tmp_path / FOLDER).glob("*.json"))


BROKEN: dict[str, bytes] = {
    "empty": b"",
    "half": b'{"version": 1, "lists": {"tools": [',
    "deep": b"[" * 100_000,
    "binary": bytes(range(256)),
    "another shape": b'{"version": 1, "lists": []}',
    "a list of numbers": b'{"version": 1, "protocol_version": "x", "capabilities": {}, '
    b'"server_info": {}, "instructions": null, "at": 1, '
    b'"lists": {"tools": {"entries": [1], "at": 1, "size": 1}}}',
    "no list": b"7",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_file_is_moved_aside_and_said(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    name = await learned(tmp_path, known())
    path = tmp_path / FOLDER / f"{name}.json"
    path.write_bytes(content)
    assert await recalled(tmp_path) is None
    assert events(caplog) == ["catalogue_broken"]
    assert (tmp_path / FOLDER / f"{name}.json.broken").read_bytes() == content
    await learned(tmp_path, known())
    assert await recalled(tmp_path) is not None
    assert events(caplog) == []


async def test_files_that_others_may_have_made_are_not_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = await learned(tmp_path, known())
    path = tmp_path / FOLDER / f"{name}.json"
    path.chmod(0o666)
    assert await recalled(tmp_path) is None
    assert events(caplog) == ["catalogue_broken"]
    os.mkfifo(path)
    assert await recalled(tmp_path) is None
    path.unlink(missing_ok=True)
    other = tmp_path / "other"
    other.write_text("{}")
    path.symlink_to(other)
    assert await recalled(tmp_path) is None
    assert events(caplog) == ["catalogue_broken"] * 2
    assert other.exists()


async def test_another_version_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = await learned(tmp_path, known())
    path = tmp_path / FOLDER / f"{name}.json"
    path.write_text('{"version": 2, "new": true}')
    assert await recalled(tmp_path) is None
    assert path.read_text() == '{"version": 2, "new": true}'
    assert events(caplog) == []


@pytest.mark.parametrize("content", [b"", b"xyz", b"ab" * 31, b"\xff" * 64])
async def test_a_broken_key_is_replaced(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    await learned(tmp_path, known())
    (tmp_path / FOLDER / KEY).write_bytes(content)
    assert await recalled(tmp_path) is None
    assert events(caplog) == ["catalogue_broken"]
    await learned(tmp_path, known())
    assert await recalled(tmp_path) is not None


async def test_where_nothing_can_be_kept_it_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    async with open_memory(tmp_path) as memory:
        name = name_in(memory)
        memory.learn(name, known(), "s")
        assert memory.recall(name) is not None
    assert events(caplog) == ["catalogue_not_kept"]


async def test_a_disk_that_fails_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / FOLDER
    said: list[str] = []

    def is_said() -> bool:
        said.extend(events(caplog))
        return bool(said)

    with trio.fail_after(GUARD):
        async with open_memory(tmp_path) as memory:
            name = name_in(memory)
            folder.rename(tmp_path / "away")
            memory.learn(name, known(), "s")
            await until(is_said)
            memory.learn("other", known(), "s")
            assert memory.recall(name) is not None
            await trio.testing.wait_all_tasks_blocked()
            (tmp_path / "away").rename(folder)
            memory.learn(name, known("digs deep"), "s")
            await until((folder / f"{name}.json").exists)
    assert said + events(caplog) == ["catalogue_not_kept"]


async def test_a_disk_that_never_answers_keeps_no_daemon_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    opens = os.open

    def silent(path: Any, flags: int, *args: Any) -> int:
        if flags & os.O_CREAT:
            answers.wait(GUARD)
        return opens(path, flags, *args)

    monkeypatch.setattr(shelf, "LAST_WORDS", 0.05)
    async with open_memory(tmp_path) as memory:
        name = name_in(memory)
        monkeypatch.setattr(os, "open", silent)
        memory.learn(name, known(), "s")
        await trio.testing.wait_all_tasks_blocked()
    assert not (tmp_path / FOLDER / f"{name}.json").exists()
    answers.set()
    with trio.fail_after(GUARD):
        await until((tmp_path / FOLDER / f"{name}.json").exists)


async def test_daemons_that_share_a_directory_leave_each_other_alone(tmp_path: Path) -> None:
    async with open_memory(tmp_path) as one, open_memory(tmp_path) as two:
        assert one.key == two.key
        for n in range(20):
            one.learn(f"one-{n}", known(f"of one, {n}"), "s")
            two.learn(f"two-{n}", known(f"of two, {n}"), "s")
            one.learn("both", known(f"of one, {n}"), "s")
            two.learn("both", known(f"of two, {n}"), "s")
    async with open_memory(tmp_path) as memory:
        assert len(memory) == 41
        both = memory.recall("both")
        assert both is not None
        assert both.lists["tools"].entries[0]["description"] in {"of one, 19", "of two, 19"}


async def test_what_is_old_is_forgotten(tmp_path: Path) -> None:
    now = time.time()
    name = await learned(tmp_path, known(at=now - KEPT - 60))
    assert await recalled(tmp_path) is None
    assert not (tmp_path / FOLDER / f"{name}.json").exists()


async def test_what_was_never_finished_is_cleared_away(tmp_path: Path) -> None:
    await learned(tmp_path, known())
    draft = tmp_path / FOLDER / ".x.json.0123"
    draft.write_text("{")
    assert await recalled(tmp_path) is not None
    assert draft.exists()  # it may be about to be
    os.utime(draft, (1, 1))
    assert await recalled(tmp_path) is not None
    assert not draft.exists()
