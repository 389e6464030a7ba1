"""``.. states:: TASK``: a table of ``model/states.py``, drawn as boxes and arrows.

Without content all steps lead from the first state to others, and each is a line with its cause.
Else the content says where the states stand: rows of names, ``.`` where there is none. ``:hide:``
names a state that everything leads to, and whose arrows would cover the others; ``:like:`` two
states, of which the first is left in all the ways in which the second is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from emceepee_trio.model import states
from emceepee_trio.model.states import Table

WIDTH, HEIGHT, ROW = 150, 30, 34
"""Of a box, and between two steps of a star; pixels."""
ACROSS, DOWN = 205, 96
"""From the middle of a box to the next, in a grid."""
CAUSES = 430
"""Room for a cause, in a star."""

Point = tuple[float, float]


def svg(width: float, height: float, said: str, parts: Iterator[str]) -> str:
    return (
        f'<svg class="drawn" role="img" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width:{width:g}px"><title>{escape(said)}</title>{"".join(parts)}</svg>'
    )


def in_words(table: Table) -> str:
    return "; ".join(f"{s.source.value}, {s.cause}: {s.target.value}" for s in table.steps)


def box(x: float, y: float, name: str, *, is_final: bool) -> str:
    kind = "state final" if is_final else "state"
    return (
        f'<rect class="{kind}" x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" '
        f'height="{HEIGHT}" rx="6"/><text x="{x:g}" y="{y + 4:g}">{escape(name)}</text>'
    )


def head(tip: Point, angle: float) -> str:
    """Of an arrow that comes in at *angle*."""
    ends = [
        (tip[0] - 8 * math.cos(angle + by), tip[1] - 8 * math.sin(angle + by))
        for by in (-0.42, 0.42)
    ]
    (ax, ay), (bx, by) = ends
    return (
        f'<path class="head" d="M{ax:.1f} {ay:.1f}L{tip[0]:.1f} {tip[1]:.1f}L{bx:.1f} {by:.1f}z"/>'
    )


def star(table: Table) -> str:
    """All arrows begin at the start; those to one state come together."""
    targets = [state for state in table.states if state is not table.start]
    steps = sorted(table.steps, key=lambda step: targets.index(step.target))
    height = ROW * len(steps) + 10
    left, right = WIDTH / 2 + 2, WIDTH + CAUSES + WIDTH / 2
    rows = {step: 5 + ROW * n + ROW / 2 for n, step in enumerate(steps)}

    def parts() -> Iterator[str]:
        middle = height / 2
        for step, y in rows.items():
            start = left + WIDTH / 2
            bend = start + 40
            its = [rows[s] for s in steps if s.target is step.target]
            end = sum(its) / len(its)
            tip = right - WIDTH / 2
            yield (
                f'<path class="arrow" d="M{start:g} {middle:g}C{bend:g} {middle:g} {start:g} {y:g} '
                f"{bend:g} {y:g}H{tip - 34:g}C{tip - 14:g} {y:g} {tip - 26:g} {end:g} "
                f'{tip:g} {end:g}"/>'
            )
            yield head((tip, end), 0)
            yield f'<text class="cause" x="{bend + 8:g}" y="{y - 5:g}">{escape(step.cause)}</text>'
        yield box(left, middle, table.start.value, is_final=False)
        for target in targets:
            its = [rows[s] for s in steps if s.target is target]
            yield box(right, sum(its) / len(its), target.value, is_final=True)

    return svg(right + WIDTH / 2 + 2, height, in_words(table), parts())


def grid(table: Table, places: Mapping[str, Point], hidden: str, same: Sequence[str]) -> str:
    width = max(x for x, _ in places.values()) + WIDTH / 2 + 4
    height = max(y for _, y in places.values()) + HEIGHT / 2 + 34

    def parts() -> Iterator[str]:
        pairs: dict[tuple[str, str], list[str]] = {}
        ways = {(s.source.value, s.target.value, s.cause) for s in table.steps}
        for step in table.steps:
            if [step.source.value] == same[:1] and (same[1], step.target.value, step.cause) in ways:
                continue
            if hidden not in (step.source.value, step.target.value):
                pairs.setdefault((step.source.value, step.target.value), []).append(step.cause)
        for (source, target), causes in pairs.items():
            bends = 0.16 if (target, source) in pairs else 0.05
            start, end = places[source], places[target]
            dx, dy = end[0] - start[0], end[1] - start[1]
            far = abs(dx) > 1.5 * ACROSS or abs(dy) > 1.5 * DOWN
            by = max(bends, 0.24) if far else bends
            control = (start[0] + dx / 2 - dy * by, start[1] + dy / 2 + dx * by)
            a, b = border(start, control), border(end, control)
            angle = math.atan2(b[1] - control[1], b[0] - control[0])
            title = escape(f"{source} to {target}: {', '.join(causes)}")
            yield (
                f'<g><title>{title}</title><path class="arrow" d="M{a[0]:.1f} {a[1]:.1f}'
                f'Q{control[0]:.1f} {control[1]:.1f} {b[0]:.1f} {b[1]:.1f}"/>{head(b, angle)}</g>'
            )
        for state in table.states:
            if state.value != hidden:
                x, y = places[state.value]
                yield box(x, y, state.value, is_final=table.is_final(state))

    return svg(width, height, in_words(table), parts())


def border(middle: Point, towards: Point) -> Point:
    """Where the way from the *middle* of a box leaves it."""
    dx, dy = towards[0] - middle[0], towards[1] - middle[1]
    scale = max(abs(dx) / (WIDTH / 2 + 1), abs(dy) / (HEIGHT / 2 + 1))
    return middle[0] + dx / scale, middle[1] + dy / scale


def placed(rows: Sequence[str]) -> dict[str, Point]:
    return {
        name: (WIDTH / 2 + 4 + ACROSS * column, HEIGHT / 2 + 34 + DOWN * row)
        for row, line in enumerate(filter(str.strip, rows))
        for column, name in enumerate(line.split())
        if name != "."
    }


class States(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012 - as docutils has it
        "hide": directives.unchanged,
        "like": str.split,
    }

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(states.__file__)
        table = getattr(states, self.arguments[0])
        if not self.content:
            return [nodes.raw("", star(table), format="html")]
        places, hidden = placed(list(self.content)), self.options.get("hide", "")
        wanted = {state.value for state in table.states} - {hidden}
        if places.keys() != wanted:
            raise self.error(f"these have no place, or are no states: {places.keys() ^ wanted}")
        return [
            nodes.raw("", grid(table, places, hidden, self.options.get("like", [])), format="html")
        ]


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("states", States)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
