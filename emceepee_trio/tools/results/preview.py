"""Previews of answers that are too long to be read: they are kept whole, and a preview says how.

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
import trio

from ...backend.connections.turns import Turns
from ...config.bounds import KIB
from ...model.json.intake import Measure, Unfit
from ...model.json.long.reading import read
from ...model.json.long.text import LongText, Text
from ...model.json.long.value import LongValue
from ...model.json.shape import Elements, Looks, first_of, shape
from ...model.json.spelling import pieces_of, pieces_of_long
from ...model.json.weight import is_more_than
from ...model.wire import dumps, loads
from ...session.kept import PIECE, Kept, decoded_pieces, text_pieces
from ...session.results import Results
from ...waits.disk import on_disk
from ..common.response import Result, text
from .ends import HEAD, TAIL, ends_of

RESULT = "emceepee://results/"
"""What URIs of what is kept begin with."""
JSON, TEXT, BINARY = "application/json", "text/plain", "application/octet-stream"

MENTION = 3 * KIB
"""Bytes that are left for previews where something short stays beside them."""
BLOBS = 8
"""Blobs of one answer that are kept each by itself; the others are kept together, as JSON."""
BREATH = 1000
"""Blocks that are looked at in one step."""
PARSED = 256 * KIB
"""Characters of a text that is parsed to say what it looks like; of a longer one, its beginning."""
COUNTED = 8 * KIB
"""Bytes of one in which what it holds is counted at once: their pieces take many times that."""

_CUT = re.compile(
    r"(?:(?:…|\.\.\.)\W{0,3}(?:and )?\d[\d,. ]*(?:more|others?|additional|omitted)\b[^\n]{0,60}"
    r"|\d[\d,]* more (?:items?|lines?|rows?|results?|entries|characters|bytes)\b[^\n]{0,30}"
    r"|[\[(<]?\W{0,4}(?:output |result |response |content )?truncated\b[^\n]{0,80})\s*$",
    re.IGNORECASE,
)
"""How servers end what they have cut off themselves."""
CUT_OFF = "the server itself cut this off at its end; what is missing there cannot be had from us"


_PAYLOAD = {"text": "text", "image": "data", "audio": "data"}


def are_long(blocks: Sequence[Any], most: int) -> bool:
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
    if isinstance(payload, LongText):
        return payload.size
    return len(payload.encode("utf-8", "surrogatepass"))


def _payload(block: Any) -> Text | None:
    """The one long thing in it, if it is a block as they are."""
    if not isinstance(block, dict):
        return None
    kind = block.get("type")
    if kind == "resource":
        inner = block.get("resource")
        said = inner.get("text", inner.get("blob")) if isinstance(inner, dict) else None
    else:
        said = block.get(_PAYLOAD.get(kind, "")) if isinstance(kind, str) else None
    return said if isinstance(said, str | LongText) else None


def _text_of(block: Any) -> Text | None:
    """Of what a client shows as text."""
    if isinstance(block, Mapping):
        inner = block.get("resource") if block.get("type") == "resource" else block
        if isinstance(inner, Mapping) and (
            block.get("type") == "text" or block.get("type") == "resource"
        ):
            said = inner.get("text")
            return said if isinstance(said, str | LongText) else None
    return None


def _type_of(block: Any, otherwise: str) -> str:
    inner = block.get("resource") if block.get("type") == "resource" else block
    said = inner.get("mimeType") if isinstance(inner, Mapping) else None
    return said if isinstance(said, str) and 0 < len(said) <= 100 else otherwise


async def _breathe(n: int) -> None:
    """Between two of what there may be very many of: others run now and then."""
    if n % BREATH == 0:
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class Preview:
    results: Results
    most: int
    _blobs: int = attrs.field(default=0, init=False)

    async def of(self, result: Result, blocks: list[Any]) -> Result:
        """The same result, with previews for what is long in it."""
        shorter = result.copy()  # of the same kind: what stays may have long texts in it
        room = self.most - min(MENTION, self.most // 2)
        structured = result.get("structuredContent")
        about_structured: list[dict[str, Any]] = []
        if structured is not None and is_more_than(structured, room):
            del shorter["structuredContent"]
            about_structured = await self._json(structured)
        texts: list[Text] = []
        for n, block in enumerate(blocks, 1):
            await _breathe(n)
            if (said := _text_of(block)) is not None:
                texts.append(said)
        keeps_texts = is_more_than(texts, room)
        if not keeps_texts:
            room -= sum(map(len, texts))  # few: each has room
        content: list[Any] = []
        rest: list[Any] = []
        is_first = True
        for n, block in enumerate(blocks, 1):
            await _breathe(n)
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

    async def _texts(self, texts: Sequence[Text], block: Any) -> list[dict[str, Any]]:
        parts, size = list[Text](), -1
        for n, each in enumerate(texts, 1):
            await _breathe(n)
            parts += ("\n", each) if parts else (each,)
            size += len(each) + 1
        kind = _type_of(block, TEXT) if len(texts) == 1 else TEXT
        elements = None
        looks = None
        if len(texts) == 1 and (begins := texts[0][:100].lstrip()[:1]) in ("[", "{") and begins:
            looks = await _looks(texts[0][:]) if len(texts[0]) <= PARSED else None
            if looks is None and len(texts[0]) > PARSED:
                elements = Elements()
        pieces = text_pieces(parts)
        kept = await self.results.keep(
            kind,
            pieces if elements is None else _counted(pieces, elements),
            size,
            text=True,
        )
        if elements is not None:
            looks = _guessed(texts[0][: 16 * KIB], elements.count)
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
        return self._said(kept, said, ends_of(parts, is_json=looks is not None), note)

    async def _json(self, value: Any) -> list[dict[str, Any]]:
        """What has no text of its own."""
        looks = Looks()
        if type(value) is LongValue:
            said = pieces_of_long(value, looks.see)
        else:
            said = pieces_of(value)
            looks.see(b"", value)
        pieces = (piece.encode("utf-8", "surrogatepass") for piece in said)
        about = PIECE + 1 if is_more_than(value, PIECE) else 0
        kept = await self.results.keep(JSON, pieces, about, text=True)
        if kept.path is None:
            ends = _ends_of_kept(kept)
        else:
            ends = await on_disk(partial(_ends_of_kept, kept))
        return self._said(kept, {"shape": looks.said()}, ends, None)

    async def of_details(self, details: Mapping[str, Any]) -> dict[str, Any]:
        """What an error says of details that are kept."""
        said, linked = await self._json(details)
        about: dict[str, Any] = loads(said["text"])
        return {**about, "uri": linked["uri"]}

    async def _blob(self, block: Any, data: Text) -> list[dict[str, Any]]:
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
        said["next"] = next_of(kept)
        return [text(dumps(said)), link(kept)]


def next_of(kept: Kept) -> str:
    """In which ways it can be read."""
    if not kept.is_text:
        return "read_result with this id, and bytes"
    also = "bytes, grep or path" if "json" in kept.type else "bytes or grep"
    return f"read_result with this id, and lines, {also}"


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
    """What a text looks like, if it is JSON."""
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
        return shape(first_of(said.encode("utf-8", "surrogatepass"), loads), count)
    except Unfit:
        return None


def _counted(pieces: Iterable[bytes], elements: Elements) -> Iterable[bytes]:
    for piece in pieces:
        for start in range(0, len(piece), COUNTED):
            elements.feed(piece[start : start + COUNTED])
        yield piece


def _ends_of_kept(kept: Kept) -> tuple[str, str]:
    """Of JSON that is kept."""
    middle = kept.size // 2
    start, end = min(middle, 2 * HEAD), max(middle, kept.size - 2 * TAIL)
    parts = (kept.read(0, start), kept.read(end, kept.size))
    return ends_of([part.decode("utf-8", "ignore") for part in parts], is_json=True)
