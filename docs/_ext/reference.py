"""``:bound:`limits.tasks```: a bound by its name, with its value, be it a setting or a constant."""

from __future__ import annotations

from importlib import import_module

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole
from sphinx.util.typing import ExtensionMetadata

from emceepee_trio.config import Config


class Bound(SphinxRole):
    """Its name, and what it is unless somebody sets another one."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.note_reread()
        module, name = self.text.rsplit(".", 1)
        is_setting = module in ("limits", "results", "native")
        where = (
            getattr(Config(), module) if is_setting else import_module(f"emceepee_trio.{module}")
        )
        shown = self.text if is_setting else name
        value = nodes.Text(f" {getattr(where, name):,}")
        return [nodes.literal(text=shown), value], []


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_role("bound", Bound())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
