"""Templates. Everything is escaped, whoever wrote it, and nobody waits for a long page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import trio
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from jinja2.meta import find_referenced_templates

from ....model.json.intake import Steps
from ....model.text.show import escaped
from ....waits.slices import in_slices

FOLDER = Path(__file__).parents[1] / "templates"
PIECES = 250
"""Of a page, after which others have their turn."""


@attrs.define(eq=False)
class Renderer:
    _environment: Environment = attrs.field(init=False)
    _templates: dict[str, Template] = attrs.field(factory=dict, init=False)
    _reading: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    def __attrs_post_init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=_seen,
        )
        self._environment.filters |= {
            "pretty": pretty,
            "duration": duration,
            "size": size,
            "exact": Exact,
            "segment": segment,
            "counted": counted,
        }

    async def render(self, name: str, data: Mapping[str, Any]) -> str:
        if name not in self._templates:
            async with self._reading:
                # Compiled once, which takes longer than anybody shall wait.
                await trio.to_thread.run_sync(self._compile, name)
        return await in_slices(_written(self._templates[name], data))

    def _compile(self, name: str) -> None:
        """And all that it is made of."""
        if name not in self._templates:
            tree = self._environment.parse((FOLDER / name).read_text("utf-8"))
            for other in find_referenced_templates(tree):
                assert other is not None, f"{name} names a template that it makes up"
                self._compile(other)
            self._templates[name] = self._environment.get_template(name)


def _written(template: Template, data: Mapping[str, Any]) -> Steps[str]:
    parts = []
    for n, part in enumerate(template.generate(data), 1):
        parts.append(part)
        if n % PIECES == 0:
            yield
    return "".join(parts)


class Exact(str):
    """What goes into a field of a form, and comes back from there as it is."""

    __slots__ = ()


def _seen(value: Any) -> Any:
    """Nothing hides in what people read, or turns its direction."""
    return escaped(value, lines=True) if type(value) is str else value


def segment(name: str) -> str:
    """*name* as one part of a path, whatever is in it: tools may be called ``../other``."""
    return quote(name, safe="")


def counted(names: Iterable[str]) -> list[tuple[str, int]]:
    """Each once, with how often it is there; in the order of the first."""
    return list(Counter(names).items())


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def duration(seconds: float) -> str:
    """As long as that, in one or two units."""
    whole = int(seconds)
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def size(count: float) -> str:
    """Of so many bytes."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if count >= 10 or unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
