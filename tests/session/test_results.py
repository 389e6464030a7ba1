"""What a session keeps of long answers, and that nothing of it is left."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.config import Config
from emceepee_trio.errors import LimitReached
from emceepee_trio.session.kept import (
    PIECE,
    Kept,
    ResultFolders,
    decoded_pieces,
    text_pieces,
)
from emceepee_trio.session.manager import open_sessions
from emceepee_trio.tools.common.registry import Request
from emceepee_trio.tools.results.reading import read_result

LONG = "x" * (3 * PIECE)


def files(state: Path) -> list[Path]:
    # Not by rglob, which minds that a folder is removed meanwhile.
    return [Path(at, name) for at, _, names in os.walk(state / "results") for name in names]


def folders(state: Path) -> list[Path]:
    return list((state / "results").iterdir())


async def test_nothing_is_left_of_a_session(tmp_path: Path) -> None:
    async with open_sessions(Config(), tmp_path) as manager:
        one, other = [await manager.ensure(name, "p") for name in ("one", "other")]
        for session in (one, one, other):
            kept = await session.results.keep("text/plain", text_pieces([LONG]), 10**6, text=True)
            assert kept.read(PIECE - 1, PIECE + 1) == b"xx"
        assert len(files(tmp_path)) == 3
        manager.end(one, "test")
        with trio.fail_after(60):
            while len(files(tmp_path)) > 1:  # noqa: ASYNC110 - a disk tells nobody
                await trio.sleep(0.001)
        assert other.results.get(kept.id).read(0, 3) == b"xxx"
    assert folders(tmp_path) == []


async def test_who_gives_up_leaves_nothing(tmp_path: Path) -> None:
    begun, go_on, ended = trio.Event(), threading.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def pieces() -> Iterator[bytes]:
        yield b"x" * PIECE
        token.run_sync_soon(begun.set)
        go_on.wait()
        token.run_sync_soon(ended.set)
        yield b"x"

    async with open_sessions(Config(), tmp_path) as manager:
        session = await manager.ensure("one", "p")
        async with trio.open_nursery() as nursery:

            async def keep() -> None:
                await session.results.keep("text/plain", pieces(), 10**6, text=True)

            nursery.start_soon(keep)
            await begun.wait()
            assert len(files(tmp_path)) == 1
            nursery.cancel_scope.cancel("not wanted any more")
        assert session.results.size == 0
        assert files(tmp_path) == []
        go_on.set()
        await ended.wait()
        assert files(tmp_path) == []


async def test_what_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    async with open_sessions(Config(), tmp_path) as manager:
        session = await manager.ensure("one", "p")
        (tmp_path / "results").rmdir() if (tmp_path / "results").exists() else None
        (tmp_path / "results").write_text("in the way")
        with pytest.raises(OSError, match="exists"):
            await session.results.keep("text/plain", text_pieces([LONG]), 10**6, text=True)
        assert session.results.size == 0
        # What is short needs no disk.
        assert await session.results.keep("text/plain", [b"x"], 1, text=True)


def test_what_another_daemon_has_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for state in (tmp_path, None):
        one, other = ResultFolders(state), ResultFolders(state)
        path = one.new().path_of("x")
        path.write_text("x")
        other.clear()
        assert path.read_text() == "x"
        # As if it had been killed: nobody holds its folder any more.
        os.close(one._fd)
        other.clear()
        assert not path.parent.parent.exists()
        other.remove()


def test_without_a_state_directory_there_is_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = ResultFolders(None)
    path = own.new().path_of("x")
    assert path.is_relative_to(tmp_path)
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    own.remove()
    assert list(tmp_path.iterdir()) == []


lines = st.lists(st.text("aé🦑\n", max_size=5), max_size=20).map("".join)


@given(lines, st.integers(1, 7))
def test_lines_are_where_they_are(said: str, piece: int) -> None:
    data = said.encode()
    kept = Kept("id", "text/plain", True)
    for start in range(0, len(data), piece):
        kept._count(data[start : start + piece])
    kept._data = data
    wanted = data.splitlines(keepends=True) if b"\r" not in data else []
    assert kept.lines == len(wanted)
    assert [
        kept.read(kept.start_of(n), kept.start_of(n + 1)) for n in range(1, kept.lines + 1)
    ] == wanted
    at = 0
    for number, line in enumerate(wanted, 1):
        assert kept.line_at(at) == number
        assert kept.line_at(at + len(line) - 1) == number
        at += len(line)


def test_what_is_no_base64_says_so() -> None:
    assert b"".join(decoded_pieces("AAEC" * PIECE)) == bytes(range(3)) * PIECE
    with pytest.raises(ValueError, match="base64"):
        list(decoded_pieces("no base64"))


async def test_a_program_that_looks_up_a_path_counts_as_a_child() -> None:
    async with open_sessions(Config()) as manager:
        session = await manager.ensure("one", "p")
        kept = await session.results.keep("application/json", text_pieces(["[7]"]), 3, text=True)
        request = Request(session, manager)
        reply = await read_result.call(request, {"id": kept.id, "path": "/0"})
        assert reply.result["content"][0]["text"] == "7"
        with ExitStack() as others:
            for _ in range(session.shared.most_children):
                others.enter_context(session.shared.place_for_child())
            with pytest.raises(LimitReached):
                await read_result.call(request, {"id": kept.id, "path": "/0"})
