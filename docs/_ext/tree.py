"""``.. tree::``: what lives in what, drawn as boxes in boxes.

Each line is one thing, indented below what it lives in, with what there is to say of it behind a
``|``. Readable as it is where nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import attrs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

STEP = 2
"""Spaces that one level is indented by."""


@attrs.define
class Thing:
    name: str
    said: str
    within: list[Thing] = attrs.Factory(list)


def read(lines: Sequence[str]) -> list[Thing]:
    """Raises `ValueError` for a line that is indented by more than one level."""
    found: list[Thing] = []
    path: list[list[Thing]] = [found]
    for line in filter(str.strip, lines):
        depth, odd = divmod(len(line) - len(line.lstrip()), STEP)
        if odd or depth >= len(path):
            raise ValueError(f"indented in a way that says nothing: {line!r}")
        name, _, said = line.partition("|")
        thing = Thing(name.strip(), said.strip())
        path[depth].append(thing)
        path[depth + 1 :] = [thing.within]
    return found


def drawn(things: Sequence[Thing]) -> Iterator[str]:
    yield "<ul>"
    for thing in things:
        said = f" <span>{escape(thing.said)}</span>" if thing.said else ""
        yield f"<li><b>{escape(thing.name)}</b>{said}"
        if thing.within:
            yield from drawn(thing.within)
        yield "</li>"
    yield "</ul>"


class Tree(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            things = read(list(self.content))
        except ValueError as error:
            raise self.error(str(error)) from None
        html = f'<div class="tree">{"".join(drawn(things))}</div>'
        return [nodes.raw("", html, format="html")]


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("tree", Tree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
