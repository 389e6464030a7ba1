"""Templates. Everything is escaped, whoever wrote it, and nobody waits for a long page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import trio
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ....model.json.intake import Steps
from ....model.text.show import escaped
from ....waits.slices import in_slices

FOLDER = Path(__file__).parents[1] / "templates"
PIECES = 250
"""Of a page, after which others have their turn."""


@attrs.define(eq=False)
class Renderer:
    _environment: Environment = attrs.field(init=False)
    _templates: Mapping[str, Template] = attrs.field(factory=dict, init=False)
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
        }

    async def render(self, name: str, data: Mapping[str, Any]) -> str:
        async with self._reading:
            if not self._templates:
                # Compiled once, which takes longer than anybody shall wait.
                self._templates = await trio.to_thread.run_sync(self._compiled)
        return await in_slices(_written(self._templates[name], data))

    def _compiled(self) -> dict[str, Template]:
        names = self._environment.list_templates(extensions=["html"])
        return {name: self._environment.get_template(name) for name in names}


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
