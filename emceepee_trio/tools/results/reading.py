"""Reading what is kept of long answers, in parts that are short enough to be shown."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from subprocess import DEVNULL
from typing import Annotated, Any

import trio

from ...codemode.run import ENVIRONMENT
from ...config.bounds import MAX_NAME, MAX_PAGE_BYTES, MAX_SEARCH_PATTERN
from ...config.server import A_NAME
from ...errors import ExecutionFailed, InvalidArguments, ToolError
from ...model.json.fields import Bounds, Doc, Most, frozen
from ...model.json.problems import Problem
from ...model.wire import dumps, loads
from ...session.kept import PIECE, Kept
from ...session.session import Session
from ...waits.disk import on_disk
from ...waits.matching import in_thread
from ..common.registry import READS, Request, tool
from ..common.response import Reply, text
from . import selecting
from .grep import Grep
from .parts import bytes_of, decoded, lines_of, span_of
from .preview import RESULT

ABOUT = 640
"""Bytes for what is said beside what is read."""
MAX_PATH_BYTES = 128 * 1024 * 1024
"""Of a result in which a path is looked up, which has to be parsed as a whole for that."""
PATIENCE = 30.0
"""Seconds for that."""


_UNSAYABLE = re.compile("[\0\ud800-\udfff]")
"""In an argument of a program."""


@frozen
class ReadResult:
    id: Annotated[str, A_NAME]
    lines: Annotated[tuple[int, ...] | None, Most(2), Doc("[1, 9]: the first 9")] = None
    bytes: Annotated[tuple[int, ...] | None, Most(2), Doc("[0, 9]: the first 9")] = None
    grep: Annotated[str | None, Most(most_characters=MAX_SEARCH_PATTERN), Doc("regex")] = None
    around: Annotated[int, Bounds(0, 50)] = 0
    path: Annotated[
        str | None, Most(most_characters=MAX_NAME), Doc("JSON Pointer (/a/0) or JMESPath")
    ] = None

    def problems(self) -> Iterator[Problem]:
        for name in ("lines", "bytes"):
            span = getattr(self, name)
            if span is not None and len(span) != 2:
                yield Problem(name, "expected two numbers, [from, to]")
        given = [name for name in ("lines", "bytes", "path") if getattr(self, name) is not None]
        if len(given) > 1 or (self.grep is not None and given not in ([], ["lines"])):
            yield Problem("", "expected one of lines, bytes, grep and path")
        if self.around and self.grep is None:
            yield Problem("around", "lines around what grep finds; give grep, too")


@tool(
    "Read a part of a result that was too long.",
    ReadResult,
    READS,
    waits=True,
)
async def read_result(request: Request, asked: ReadResult) -> Reply:
    kept = request.session.results.get(asked.id.removeprefix(RESULT))
    try:
        return await _read(request.session, kept, asked)
    except OSError as error:
        raise _lost(kept, error) from None


async def _read(session: Session, kept: Kept, asked: ReadResult) -> Reply:
    room = room_of(session)
    if asked.path is not None:
        _check_text(kept)
        # One at a time, and counted: each may take a processor, and much memory.
        async with session.matching:
            with session.shared.place_for_child():
                said, about = await _selected(kept, asked.path, room)
    elif asked.grep is not None:
        _check_text(kept)
        said, about = await _found(session, kept, asked, room)
    elif asked.bytes is not None or not kept.is_text:
        if asked.lines is not None:
            _check_text(kept)
        start, end = asked.bytes or (0, kept.size)
        if not kept.is_text:
            return await _blob(kept, start, end, room)
        said, about = await _looked(kept, bytes_of, kept, start, end, room)
    else:
        first, last = asked.lines or (1, kept.lines)
        said, about = await _looked(kept, lines_of, kept, first, last, room)
    return _reply(kept, text(said), about)


async def part_of(session: Session, uri: str) -> Reply:
    """What read_resource says of the resource that a result is: as much as there is room for."""
    kept = session.results.get(uri.removeprefix(RESULT))
    try:
        return await _read(session, kept, ReadResult(kept.id))
    except OSError as error:
        raise _lost(kept, error) from None


async def contents_of(session: Session, uri: str) -> dict[str, Any]:
    """What resources/read gives of it: all, since the link has told its client how much that is."""
    kept = session.results.get(uri.removeprefix(RESULT))
    most = session.config.limits.message
    if kept.size > most:
        raise ExecutionFailed(
            f"result {kept.id} has {kept.size} bytes, more than limits.message ({most}); the tool "
            "read_result reads parts of it"
        )
    try:
        data = await _looked(kept, kept.read, 0, kept.size)
    except OSError as error:
        raise _lost(kept, error) from None
    shown = {"uri": RESULT + kept.id, "mimeType": kept.type}
    if kept.is_text:
        return {"contents": [shown | {"text": decoded(kept, data)}]}
    return {"contents": [shown | {"blob": base64.b64encode(data).decode()}]}


def _lost(kept: Kept, error: OSError) -> ToolError:
    return ExecutionFailed(
        f"result {kept.id} cannot be read any more ({error.strerror}); call again for a new one"
    )


def room_of(session: Session) -> int:
    """Bytes of a part, so that with what is said of it it is never above the bound."""
    most = session.config.results.inline_bytes or MAX_PAGE_BYTES
    return max(most - ABOUT, most // 2)


def _reply(kept: Kept, block: dict[str, Any], about: dict[str, Any]) -> Reply:
    said = {"result": kept.id} | about
    return Reply({"content": [block, text(dumps(said))], "isError": False})


def _check_text(kept: Kept) -> None:
    if not kept.is_text:
        raise InvalidArguments(f"result {kept.id} is {kept.type}, no text; read bytes of it")


async def _looked(kept: Kept, work: Any, *args: Any) -> Any:
    """What *work* finds, in a thread if a disk is in it."""
    if kept.path is None:
        return work(*args)
    return await on_disk(partial(work, *args))


async def _blob(kept: Kept, start: int, end: int, room: int) -> Reply:
    start, end = span_of("bytes", start, end, 0, kept.size)
    stop = min(end, start + (room - 200) // 4 * 3)
    data = await _looked(kept, kept.read, start, stop)
    said = {"uri": RESULT + kept.id, "mimeType": kept.type, "blob": base64.b64encode(data).decode()}
    about: dict[str, Any] = {"bytes": [start, stop], "of": kept.size}
    if stop < end:
        about |= {"more": end - stop, "next": {"bytes": [stop, end]}}
    return _reply(kept, {"type": "resource", "resource": said}, about)


async def _found(
    session: Session, kept: Kept, asked: ReadResult, room: int
) -> tuple[str, dict[str, Any]]:
    assert asked.grep is not None
    grep = Grep.of(asked.grep)
    async with session.matching:
        return await in_thread(partial(_grepped, kept, grep, asked, room))


def _grepped(kept: Kept, grep: Grep, asked: ReadResult, room: int) -> tuple[str, dict[str, Any]]:
    first, last = asked.lines or (1, max(kept.lines, 1))
    first, last = span_of("lines", first, last, 1, max(kept.lines, 1))
    start, end = kept.start_of(first), kept.start_of(last + 1)
    found = grep.among(kept, start, end, room)
    said, shown, until = [], 0, first - 1
    left = room
    for number, line in found.lines:
        part = [f"{number}:{line}"]
        if asked.around:
            part = _around(kept, number, line, asked.around, until)
        text_of_it = "\n".join(part)
        if (left := left - len(dumps(text_of_it).encode("utf-8", "surrogatepass")) - 2) < 0:
            break
        said.append(text_of_it)
        until = number + asked.around
        shown += 1
    about: dict[str, Any] = {"matches": found.matches, "shown": shown, "of": kept.lines}
    if not found.is_complete:
        at = kept.line_at(min(found.until, max(kept.size - 1, 0)))
        about["note"] = (
            f"it was searched only up to about line {at}: there are too many matches, or they "
            "take too long; use a simpler pattern, or lines"
        )
    if shown < found.matches:
        about["more"] = found.matches - shown
        next_line = found.lines[shown - 1][0] + 1 if shown else first
        about["next"] = {"grep": asked.grep, "lines": [next_line, last]}
    return "\n".join(said), about


def _around(kept: Kept, number: int, line: str, around: int, after: int) -> list[str]:
    """As grep has it, without what stands there already."""
    first, last = max(number - around, after + 1, 1), min(number + around, kept.lines)
    said = []
    for each in range(first, last + 1):
        if each == number:
            said.append(f"{each}:{line}")
            continue
        start = kept.start_of(each)
        data = kept.read(start, min(start + PIECE, kept.start_of(each + 1)))
        beside = data.decode("utf-8", "replace").rstrip("\n")
        said.append(f"{each}-{beside[:200]}{'…' if len(beside) > 200 else ''}")
    return said


async def _selected(kept: Kept, path: str, room: int) -> tuple[str, dict[str, Any]]:
    if kept.size > MAX_PATH_BYTES:
        raise InvalidArguments(
            f"path: the result has {kept.size} bytes, more than the {MAX_PATH_BYTES} in which a "
            "path is looked up; use grep, lines or bytes"
        )
    if _UNSAYABLE.search(path):
        raise InvalidArguments("path: no program can be told a NUL, or half of a surrogate pair")
    file = "-" if kept.path is None else str(kept.path)
    command = [sys.executable, "-P", str(Path(selecting.__file__)), file, path, str(room)]
    data = b"" if kept.path is not None else kept.read(0, kept.size)
    with trio.move_on_after(PATIENCE):
        done = await trio.run_process(
            command, stdin=data, capture_stdout=True, stderr=DEVNULL, check=False, env=ENVIRONMENT
        )
        said: Any = {}
        if done.stdout:
            said = loads(done.stdout.decode())
        if "error" in said or not said:
            raise InvalidArguments(
                f"path: {said.get('error', 'it takes too much to look that up')}"
            )
        about = {
            key: said[key] for key in ("is", "shown", "more", "omitted", "note") if key in said
        }
        if "more" in said:
            about["next"] = _next_path(path, said["shown"])
        elif "omitted" in said:
            about["note"] = "select less of it, by a longer path"
        return said["text"], {"path": path} | about
    raise InvalidArguments(f"path: it was not found within {PATIENCE:g} s; use a simpler one")


def _next_path(path: str, shown: int) -> dict[str, Any]:
    if path.startswith("/"):
        return {"path": f"{path.rstrip('/')}/{shown}"}
    return {"path": f"({path})[{shown}:]"}


TOOLS = (read_result,)
