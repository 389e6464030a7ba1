"""``.. lanes::``: who hands what to whom, drawn as columns and arrows.

The first line names the columns, with ``|`` between them; each further line is an arrow, ``from ->
to: what``. Readable as it is where nothing is drawn.
"""

from __future__ import annotations

import re
from html import escape

import attrs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

ARROW = re.compile(r"(?P<source>[^:]+?) -> (?P<target>[^:]+): (?P<what>.+)")
COLUMN, ROW, HEAD = 185, 34, 40
"""Pixels."""
STYLE = (
    "text{font:12px sans-serif;fill:currentColor}"
    "line,path{stroke:currentColor;fill:none}"
    ".lane{stroke-dasharray:3 4;opacity:.5}.name{font-weight:bold}"
)


@attrs.frozen
class Arrow:
    source: int
    target: int
    what: str


def read(lines: list[str]) -> tuple[list[str], list[Arrow]]:
    """Raises `ValueError` for a line that is no arrow between two columns."""
    columns = [name.strip() for name in lines[0].split("|")]
    arrows = []
    for line in filter(str.strip, lines[1:]):
        found = ARROW.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"no arrow: {line!r}")
        source, target = (columns.index(found[end].strip()) for end in ("source", "target"))
        arrows.append(Arrow(source, target, found["what"]))
    return columns, arrows


def drawn(columns: list[str], arrows: list[Arrow]) -> str:
    width, height = COLUMN * len(columns), HEAD + ROW * len(arrows) + 16
    middle = [COLUMN * n + COLUMN // 2 for n in range(len(columns))]
    parts = [
        f'<svg role="img" viewBox="0 0 {width} {height}" style="max-width:{width}px">',
        f"<style>{STYLE}</style>",
        "<title>",
        escape("; ".join(f"{columns[a.source]} to {columns[a.target]}: {a.what}" for a in arrows)),
        "</title>",
    ]
    for x, name in zip(middle, columns, strict=True):
        parts.append(
            f'<text class="name" text-anchor="middle" x="{x}" y="16">{escape(name)}</text>'
        )
        parts.append(f'<line class="lane" x1="{x}" y1="24" x2="{x}" y2="{height}"/>')
    for n, arrow in enumerate(arrows):
        y = HEAD + ROW * n + 16
        start, end = middle[arrow.source], middle[arrow.target]
        if start == end:  # by itself
            parts.append(f'<path d="M{start} {y - 8}h22v12h-18"/>')
            tip, back = start, 1
            is_last = arrow.source == len(columns) - 1
            x, anchor = (start - 8, "end") if is_last else (start + 28, "start")
        else:
            back = 1 if end < start else -1
            parts.append(f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>')
            tip, x, anchor = end, (start + end) // 2, "middle"
        level = y + 4 if start == end else y
        parts.append(
            f'<path d="M{tip + 6 * back} {level - 4}L{tip} {level}L{tip + 6 * back} {level + 4}"/>'
        )
        shift = y if start == end else y - 6
        parts.append(
            f'<text text-anchor="{anchor}" x="{x}" y="{shift}">{escape(arrow.what)}</text>'
        )
    return "".join((*parts, "</svg>"))


class Lanes(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            columns, arrows = read(list(self.content))
        except ValueError as error:
            raise self.error(str(error)) from None
        return [nodes.raw("", drawn(columns, arrows), format="html")]


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("lanes", Lanes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
