"""Answers of servers that are too long to be read: they are kept whole, and what is shown says how.

Texts of one answer are kept together, as its client would see them below each other; images and
other blobs each by itself. What is short stays where it is, and so does whatever else an answer
has: that it is an error, its ``_meta``. `session/results.py` keeps, and the tool `read_result`
reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from ... import logs
from ...backend.connections.turns import Turns
from ...config import OUR_NAME
from ...config.bounds import KIB, MAX_PAGE_BYTES, MAX_PREVIEW_BYTES
from ...errors import ToolError
from ...model.json.intake import Measure, Unfit, read
from ...model.json.shape import Elements, first_of, shape
from ...model.json.spelling import pieces_of
from ...model.json.weight import is_more_than
from ...model.native.places import in_result
from ...model.native.uris import native_uri
from ...model.wire import dumps, loads
from ...session.kept import PIECE, Kept, decoded_pieces, text_pieces
from ...session.results import Results
from ...waits.disk import on_disk
from ..common.registry import Request, Tool
from ..common.response import Reply, Result, error_reply, text

RESULT = "emceepee://results/"
"""What URIs of what is kept begin with."""
NEXT = "read_result with this id, and lines, bytes, grep or path"
JSON, TEXT, BINARY = "application/json", "text/plain", "application/octet-stream"

MENTION = 3 * KIB
"""Bytes that are left for previews where something short stays beside them."""
BLOBS = 8
"""Blobs of one answer that are kept each by itself; the others are kept together, as JSON."""
PARSED = 256 * KIB
"""Characters of a text that is parsed to say what it looks like; of a longer one, its beginning."""

_CUT = re.compile(
    r"(?:(?:…|\.\.\.)\W{0,3}(?:and )?\d[\d,. ]*(?:more|others?|additional|omitted)\b[^\n]{0,60}"
    r"|\d[\d,]* more (?:items?|lines?|rows?|results?|entries|characters|bytes)\b[^\n]{0,30}"
    r"|[\[(<]?\W{0,4}(?:output |result |response |content )?truncated\b[^\n]{0,80})\s*$",
    re.IGNORECASE,
)
"""How servers end what they have cut off themselves."""
CUT_OFF = "the server itself cut this off at its end; what is missing there cannot be had from us"


def inline_bytes(request: Request, server: str) -> int:
    """How long answers of that server may be that are shown whole; 0: any."""
    if not request.shortens:
        return 0
    session = request.session
    backend = session.backends.get(server)
    own = backend.server.results.inline_bytes if backend is not None else None
    return session.config.results.inline_bytes if own is None else own


async def shown(request: Request, server: str, result: Result) -> Result:
    """A *result* of that server as its client sees it, whole or with previews."""
    if request.is_native:
        result = await native_result(server, result)
    most = inline_bytes(request, server)
    content, structured = result.get("content"), result.get("structuredContent")
    blocks = content if isinstance(content, list) else []
    if not isinstance(content, list) and most and is_more_than(content, most):
        blocks = [content]  # whatever that is
    if not most or not (_is_long(blocks, most) or is_more_than(structured, most)):
        return result
    try:
        return await _Preview(request.session.results, most).of(result, blocks)
    except OSError as error:
        _not_kept(request, error)
        return result


async def native_result(server: str, result: Result) -> Result:
    """The same with URIs that say whose they are."""
    async with Turns() as turns:
        return await turns.through(in_result(result, partial(native_uri, server)))


async def shown_json(request: Request, server: str, value: Any) -> Result | None:
    """The same of what we would write as JSON; None if it is short."""
    most = inline_bytes(request, server)
    if not most or not is_more_than(value, most):
        return None
    return await shown(request, server, {"content": [], "structuredContent": value})


async def answered(tool: Tool, request: Request, arguments: Mapping[str, Any]) -> Reply:
    """What a tool of ours says, and of what is too long for any answer a preview.

    What servers answer has been looked at; events have a bound of their own.
    """
    reply = await tool.call(request, arguments)
    most = inline_bytes(request, OUR_NAME)
    most = max(most, MAX_PAGE_BYTES) if most else 0
    content: list[Any] = reply.result.get("content", [])
    if not most or reply.claim is not None or reply.of is not None or not _is_long(content, most):
        return reply
    try:
        result = await _Preview(request.session.results, most).of(reply.result, content)
    except OSError as error:
        _not_kept(request, error)
        return reply
    return attrs.evolve(reply, result=result, full=())


def _not_kept(request: Request, error: OSError) -> None:
    why = error.strerror or str(error)
    logs.write("warn", "result_not_kept", session=request.session.id, error=why)


async def shown_error(request: Request, error: ToolError) -> Reply:
    """An error, and of long details of it a preview."""
    most = request.session.config.results.inline_bytes if request.shortens else 0
    details = dict(error.details or {})
    if not most or not is_more_than(details, most):
        return error_reply(error)
    try:
        about = await _Preview(request.session.results, most).of_details(details)
    except OSError:
        return error_reply(error)
    short = {key: value for key, value in details.items() if not is_more_than(value, KIB)}
    said = error.to_json()["error"] | {"details": {**short, "long": about}}
    return Reply({"content": [text(dumps({"error": said}))], "isError": True})


_PAYLOAD = {"text": "text", "image": "data", "audio": "data"}


def _is_long(blocks: Sequence[Any], most: int) -> bool:
    """Whether what they hold is more than that; of what holds it, only what is unusual counts."""
    left = most - 30 * max(0, len(blocks) - 1)
    for block in blocks:
        if left < 0:
            break
        left -= _size(block, left)
    return left < 0


def _size(block: Any, room: int) -> int:
    """Of a block, or something above *room*."""
    payload = _payload(block)
    if payload is None:
        return room + 1 if is_more_than(block, room) else len(dumps(block))
    if len(payload) > room or payload.isascii():
        return len(payload)
    return len(payload.encode("utf-8", "surrogatepass"))


def _payload(block: Any) -> str | None:
    """The one long thing in it, if it is a block as they are."""
    if not isinstance(block, Mapping):
        return None
    kind = block.get("type")
    if kind == "resource":
        inner = block.get("resource")
        said = inner.get("text", inner.get("blob")) if isinstance(inner, Mapping) else None
    else:
        said = block.get(_PAYLOAD.get(kind, "")) if isinstance(kind, str) else None
    return said if isinstance(said, str) else None


def _text_of(block: Any) -> str | None:
    """Of what a client shows as text."""
    if isinstance(block, Mapping):
        inner = block.get("resource") if block.get("type") == "resource" else block
        if isinstance(inner, Mapping) and (
            block.get("type") == "text" or block.get("type") == "resource"
        ):
            said = inner.get("text")
            return said if isinstance(said, str) else None
    return None


def _type_of(block: Any, otherwise: str) -> str:
    inner = block.get("resource") if block.get("type") == "resource" else block
    said = inner.get("mimeType") if isinstance(inner, Mapping) else None
    return said if isinstance(said, str) and 0 < len(said) <= 100 else otherwise


@attrs.define(eq=False)
class _Preview:
    results: Results
    most: int
    _blobs: int = attrs.field(default=0, init=False)

    async def of(self, result: Result, blocks: list[Any]) -> Result:
        """The same result, with previews for what is long in it."""
        shorter = dict(result)
        room = self.most - min(MENTION, self.most // 2)
        structured = result.get("structuredContent")
        about_structured: list[dict[str, Any]] = []
        if structured is not None and is_more_than(structured, room):
            del shorter["structuredContent"]
            about_structured = await self._json(structured)
        texts = [said for block in blocks if (said := _text_of(block)) is not None]
        keeps_texts = is_more_than(texts, room)
        if not keeps_texts:
            room -= sum(map(len, texts))
        content: list[Any] = []
        rest: list[Any] = []
        is_first = True
        for block in blocks:
            if _text_of(block) is not None:
                if not keeps_texts:
                    content.append(block)
                elif is_first:
                    is_first = False
                    content += await self._texts(texts, block)
            elif (size := _size(block, room)) <= room:
                room -= size
                content.append(block)
            elif self._blobs < BLOBS and (data := _payload(block)) is not None:
                content += await self._blob(block, data)
            else:
                rest.append(block)
        if rest:
            content += await self._json(rest)
        shorter["content"] = [*content, *about_structured]
        return shorter

    async def _texts(self, texts: Sequence[str], block: Any) -> list[dict[str, Any]]:
        parts = [part for said in texts for part in ("\n", said)][1:]
        kind = _type_of(block, TEXT) if len(texts) == 1 else TEXT
        elements = None
        looks = None
        if len(texts) == 1 and (begins := texts[0][:100].lstrip()[:1]) in ("[", "{") and begins:
            looks = await _looks(texts[0])
            if looks is None and len(texts[0]) > PARSED:
                elements = Elements()
        pieces = text_pieces(parts)
        kept = await self.results.keep(
            kind,
            pieces if elements is None else _counted(pieces, elements),
            sum(map(len, parts)),
            text=True,
        )
        if elements is not None:
            looks = _guessed(texts[0], elements.count)
        if looks is not None and kind == TEXT:
            kept.type = JSON
        said: dict[str, Any] = {}
        if len(texts) > 1:
            said["blocks"] = len(texts)
        inner = block.get("resource") if block.get("type") == "resource" else None
        if isinstance(inner, Mapping) and isinstance(inner.get("uri"), str) and len(texts) == 1:
            said["of"] = inner["uri"][:KIB]
        said["shape"] = looks or f"text of {kept.lines:,} line{'' if kept.lines == 1 else 's'}"
        note = CUT_OFF if _CUT.search(texts[-1][-300:]) else None
        return self._said(kept, said, _ends(parts, is_json=looks is not None), note)

    async def _json(self, value: Any) -> list[dict[str, Any]]:
        """What has no text of its own."""
        pieces = (piece.encode("utf-8", "surrogatepass") for piece in pieces_of(value))
        about = PIECE + 1 if is_more_than(value, PIECE) else 0
        kept = await self.results.keep(JSON, pieces, about, text=True)
        if kept.path is None:
            ends = _ends_of(kept)
        else:
            ends = await on_disk(partial(_ends_of, kept))
        return self._said(kept, {"shape": shape(value)}, ends, None)

    async def of_details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """What an error says of details that are kept."""
        said, linked = await self._json(details)
        about: dict[str, Any] = loads(said["text"])
        return {**about, "uri": linked["uri"]}

    async def _blob(self, block: Any, data: str) -> list[dict[str, Any]]:
        self._blobs += 1
        kind, is_text = _type_of(block, BINARY), False
        try:
            kept = await self.results.keep(kind, decoded_pieces(data), len(data), text=False)
        except ValueError:  # it is no base64
            kept = await self.results.keep(kind, text_pieces([data]), len(data), text=True)
            is_text = True
        what = f"{block.get('type', 'blob')}, {kind}, {kept.size:,} bytes"
        return self._said(kept, {"shape": what + (", not base64" if is_text else "")}, None, None)

    def _said(
        self, kept: Kept, more: Mapping[str, Any], ends: tuple[str, str] | None, note: str | None
    ) -> list[dict[str, Any]]:
        said: dict[str, Any] = {"result": kept.id, "type": kept.type, "bytes": kept.size}
        if kept.is_text:
            said["lines"] = kept.lines
        said |= more
        if ends is not None:
            head, tail = ends
            said["head"] = head
            said["omitted"] = omitted(kept, head, tail)
            said["tail"] = tail
        if (file := self.results.file_of(kept)) is not None:
            said["file"] = file
        if note is not None:
            said["note"] = note
        said["next"] = NEXT
        return [text(dumps(said)), link(kept)]


def omitted(kept: Kept, head: str, tail: str) -> dict[str, int]:
    shown = (head + tail).encode("utf-8", "surrogatepass")
    lines = kept.lines - head.count("\n") - tail.count("\n") - (not tail.endswith("\n"))
    return {"bytes": kept.size - len(shown), "lines": max(lines, 0)}


def link(kept: Kept) -> dict[str, Any]:
    return {
        "type": "resource_link",
        "uri": RESULT + kept.id,
        "name": f"result {kept.id}",
        "mimeType": kept.type,
        "size": kept.size,
    }


async def _looks(said: str) -> str | None:
    """What a text that is not too long looks like, if it is JSON."""
    if len(said) > PARSED:
        return None
    data = said.encode("utf-8", "surrogatepass")
    try:
        async with Turns() as turns:
            return shape(await turns.through(read(data, Measure(len(data), len(data)), loads)))
    except Unfit:
        return None


def _guessed(said: str, count: int | None) -> str | None:
    """The same of a longer one, by its beginning; *count* is of what it holds."""
    if count is None:
        return None
    try:
        return shape(first_of(said[: 16 * KIB].encode("utf-8", "surrogatepass"), loads), count)
    except Unfit:
        return None


def _counted(pieces: Iterable[bytes], elements: Elements) -> Iterable[bytes]:
    for piece in pieces:
        elements.feed(piece)
        yield piece


HEAD = MAX_PREVIEW_BYTES * 5 // 8
TAIL = MAX_PREVIEW_BYTES - HEAD


def _ends_of(kept: Kept) -> tuple[str, str]:
    """Of JSON that is kept."""
    middle = kept.size // 2
    start, end = min(middle, 2 * HEAD), max(middle, kept.size - 2 * TAIL)
    parts = (kept.read(0, start), kept.read(end, kept.size))
    return _ends([part.decode("utf-8", "ignore") for part in parts], is_json=True)


def _ends(parts: Sequence[str], *, is_json: bool) -> tuple[str, str]:
    """The beginning and the end of all *parts* together."""
    head, tail, length = "", "", sum(map(len, parts))
    for part in parts:
        if len(head) >= HEAD:
            break
        head += part[: HEAD - len(head)]
    head = head_of(head, HEAD, is_json=is_json)
    room = min(TAIL, length - len(head))
    for part in reversed(parts):
        if len(tail) >= room:
            break
        tail = part[-(room - len(tail)) :] + tail
    return head, tail_of(tail, TAIL, is_json=is_json)


def head_of(said: str, room: int, *, is_json: bool = False) -> str:
    """Of the beginning as much as has *room*, up to the end of a line or an element."""
    said = fitting(said, room)
    if (at := said.rfind("\n")) < 0 and is_json:
        at = max(said.rfind("},"), said.rfind("],")) + 1 or said.rfind(",")
    return said[: at + 1] if at > 0 else said


def tail_of(said: str, room: int, *, is_json: bool = False) -> str:
    """Of the end, from the beginning of a line or an element on."""
    while len(dumps(said)) - 2 > room or len(said.encode("utf-8", "surrogatepass")) > room:
        said = said[max(1, len(said) // 16) :]
    if (at := said.find("\n", 0, -1)) < 0 and is_json:
        starts = [n for n in (said.find("},"), said.find("],")) if n >= 0]
        at = min(starts) + 1 if starts else said.find(",")
    return said[at + 1 :] if at >= 0 else said


def fitting(said: str, room: int) -> str:
    """The longest beginning whose JSON has no more bytes than that, about."""
    said = said[:room]
    while (size := len(dumps(said).encode("utf-8", "surrogatepass")) - 2) > room:
        said = said[: min(len(said) * room // size, len(said) - 1)]
    return said
