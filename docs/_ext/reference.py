"""Directives for the pages that are generated from the code, so that they cannot be wrong.

``.. emceepee-settings::``  every setting of a configuration file, from the classes that read it.
``.. emceepee-tools::``     every tool with its arguments, from the registry that serves them.
``:bound:`limits.tasks```   a bound by its name, with its value: a setting, or a constant.

How settings are worded is the configuration's business; this knows only how tools look on a page.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.typing import ExtensionMetadata

from emceepee_trio.config import Config, reference_rst
from emceepee_trio.tools import all_tools
from emceepee_trio.tools.registry import Tool


class Settings(SphinxDirective):
    """What ``emceepee_trio.config`` says about itself, in RST."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # it changes without its page changing
        return self.parse_text_to_nodes(reference_rst(), allow_section_headings=True)


class Tools(SphinxDirective):
    """One section for each tool, in the order in which clients see them."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        sections = []
        for tool in all_tools():
            section = nodes.section(ids=[nodes.make_id(f"tool-{tool.name}")])
            section += nodes.title("", "", nodes.literal(text=tool.name))
            section += [nodes.paragraph(text=each) for each in paragraphs(tool.description)]
            section += list(arguments(tool))
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return [*sections]


class Bound(SphinxRole):
    """Its name, and what it is unless somebody sets another one."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.note_reread()
        module, name = self.text.rsplit(".", 1)
        where = Config().limits if module == "limits" else import_module(f"emceepee_trio.{module}")
        shown = self.text if module == "limits" else name
        value = nodes.Text(f" {getattr(where, name):,}")
        return [nodes.literal(text=shown), value], []


def paragraphs(text: str) -> list[str]:
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def arguments(tool: Tool) -> Iterator[nodes.Node]:
    properties = tool.schema.get("properties", {})
    if not properties:
        return
    listed = nodes.definition_list()
    for name, schema in properties.items():
        facts = [kind(schema)]
        if name in tool.schema.get("required", ()):
            facts.append("required")
        elif schema.get("default") is not None:
            facts.append(f"default {json.dumps(schema['default'])}")
        term = nodes.term("", "", nodes.literal(text=name), nodes.Text(f" ({', '.join(facts)})"))
        meaning = nodes.definition()
        meaning += [
            nodes.paragraph(text=each) for each in paragraphs(schema.get("description", ""))
        ]
        listed += nodes.definition_list_item("", term, meaning)
    yield listed


def kind(schema: Mapping[str, Any]) -> str:
    """A JSON schema in words: ``integer``, ``array of string``, ``"full" or "off"``."""
    if "enum" in schema:
        return " or ".join(json.dumps(value) for value in schema["enum"])
    if choices := schema.get("anyOf", schema.get("oneOf")):
        return " or ".join(dict.fromkeys(kind(each) for each in choices))
    if isinstance(schema.get("type"), list):
        return " or ".join(schema["type"])
    if schema.get("type") == "array" and "items" in schema:
        return f"array of {kind(schema['items'])}"
    return str(schema.get("type", "anything"))


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_directive("emceepee-settings", Settings)
    app.add_directive("emceepee-tools", Tools)
    app.add_role("bound", Bound())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
