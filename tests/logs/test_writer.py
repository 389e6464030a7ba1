from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from emceepee_trio.logs import writer
from emceepee_trio.logs.writer import ROOM, Stderr, Writer
from full_pipe import Pipe, full_pipe

GUARD = 60.0


@pytest.fixture(autouse=True)
def the_end_waits_for_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LAST_WORDS", GUARD)


def missing(count: int) -> bytes:
    return b"missing %d\n" % count


def open_writer(fd: int) -> Writer:
    return Writer(fd, missing, lambda: None, lambda is_last: None)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    with full_pipe() as pipe:
        yield pipe


def read_all(fd: int) -> bytes:
    read = b""
    while chunk := os.read(fd, 65536):
        read += chunk
    return read


def test_what_is_put_is_written_in_its_order(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        log = open_writer(file.fileno())
        lines = [b"%d\n" % n for n in range(10_000)]
        for line in lines:
            log.put(line)
        log.close()
    assert (tmp_path / "log").read_bytes() == b"".join(lines)


def test_nobody_waits_for_one_who_does_not_read(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LAST_WORDS", 0.01)
    log = open_writer(pipe.writes)
    line = b"x" * 99 + b"\n"
    put = 4 * ROOM // len(line)
    for _ in range(put):
        log.put(line)
    log.close()  # returns, too
    said, told = b"", 0
    while told < put:  # there are lines behind those that are missing, if the thread began late
        said += pipe.read_until(b"\n")
        told = said.count(line) + sum(map(int, re.findall(rb"missing (\d+)\n", said)))
    assert told == put
    assert said.count(line) <= 2 * ROOM // len(line)
    assert b"missing" in said


def test_what_is_missing_is_told_where_it_is_missing(pipe: Pipe) -> None:
    """Which of them are depends on when the thread begins; each is there or counted."""
    log = open_writer(pipe.writes)
    for n in range(4):
        log.put(b"%d" % n * (ROOM - 1) + b"\n")
    log.put(b"so short\n")
    said = pipe.read_until(b"missing")
    log.put(b"last\n")
    log.close()
    said += pipe.read_until(b"last\n")
    expected = [*(b"%d" % n * 9 for n in range(4)), b"so short", b"last"]
    dropped = 0
    for line in said.splitlines():
        if line.startswith(b"missing "):
            count = int(line.removeprefix(b"missing "))
            del expected[:count]
            dropped += count
        else:
            assert line[:9] == expected.pop(0)
    assert not expected
    assert dropped


def test_one_line_may_be_longer_than_the_room() -> None:
    reads, writes = os.pipe()
    log = open_writer(writes)
    heard = threading.Thread(target=lambda: got.append(read_all(reads)))
    got: list[bytes] = []
    heard.start()
    log.put(b"x" * (2 * ROOM) + b"\n")
    log.close()
    os.close(writes)
    heard.join(GUARD)
    os.close(reads)
    assert got == [b"x" * (2 * ROOM) + b"\n"]


def test_a_pipe_of_somebody_who_wants_no_waiting_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.writes, False)
    log = open_writer(pipe.writes)
    log.put(b"hello\n")
    assert pipe.read_until(b"hello\n") == b"hello\n"
    log.close()


def test_a_reader_who_is_gone_stops_nobody(pipe: Pipe) -> None:
    pipe.close_reader()
    log = open_writer(pipe.writes)
    for _ in range(100):
        log.put(b"x" * ROOM + b"\n")
    log.close()


def test_a_disk_that_was_full_is_told_what_it_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took half a line, too."""
    room = [4, 0, 10**6]
    write, tried = os.write, threading.Semaphore(0)

    def limited(fd: int, data: memoryview) -> int:
        able = room.pop(0)
        if not able:
            tried.release()
            raise OSError(28, "No space left on device")
        return write(fd, data[:able])

    with (tmp_path / "log").open("wb") as file:
        monkeypatch.setattr(os, "write", limited)
        log = open_writer(file.fileno())
        log.put(b"first\n")
        assert tried.acquire(timeout=GUARD)
        log.put(b"second\n")
        log.close()
    assert (tmp_path / "log").read_bytes() == b"firs\nsecond\nmissing 1\n"


def test_chores_are_done_when_they_are_due_and_at_the_end() -> None:
    @attrs.define
    class Chores:
        due: float | None = 0.0
        done: list[bool] = attrs.field(factory=list)
        once: threading.Event = attrs.field(factory=threading.Event)

        def __call__(self, is_last: bool) -> None:
            self.done.append(is_last)
            if len(self.done) > 1:
                self.due = None
                self.once.set()

    chores = Chores()
    with Path(os.devnull).open("wb") as file:
        log = Writer(file.fileno(), missing, lambda: chores.due, chores)
        log.put(b"x\n")
        assert chores.once.wait(GUARD)
        log.close()
    assert chores.done[-1] is True
    assert not any(chores.done[:-1])


FORKING = """
import os, sys
from emceepee_trio.logs.writer import Writer
log = Writer(1, lambda count: b"", lambda: None, lambda is_last: None)
os.register_at_fork(after_in_child=log.start_over)
log.put(b"parent\\n")
pid = os.fork()
log.put(b"child\\n" if pid == 0 else b"parent again\\n")
log.close()
if pid:
    os.waitpid(pid, 0)
"""


def test_a_fork_writes_for_itself() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING], stdout=subprocess.PIPE, check=True
    )
    assert sorted(ended.stdout.splitlines()) == [b"child", b"parent", b"parent again"]


def test_whatever_is_printed_goes_the_same_way(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as file:
        log = open_writer(file.fileno())
        stderr = io.TextIOWrapper(Stderr(log), "utf-8", "backslashreplace", write_through=True)
        print("ä", "\udc80", file=stderr)
        assert stderr.fileno() == file.fileno()
        assert not stderr.isatty()
        stderr.flush()
        log.close()
    assert (tmp_path / "log").read_text("utf-8") == "ä \\udc80\n"
