"""Literals that name what there is: a tool, a setting, an error, an event, a command, a page.

``execute_tool`` in a sentence becomes a link to its section, so that nobody has to write a role.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

ERROR = re.compile(r"TOOL_ERR_\w+")
PAGE = re.compile(r"docs/([\w/-]+)\.rst")
COMMAND = re.compile(r"emceepee ([a-z-]+)\b")
ONLY = {"servers", "roots", "context", "defaults", "policy", "http", "page", "native", "relay"}
"""Keys at the top of a file that are words of other things, too."""

Target = tuple[str, str]
"""A page, and the anchor there."""


def target_of(text: str, app: Sphinx) -> Target | None:
    standard = app.env.domains.standard_domain
    labels = standard.anonlabels
    if found := COMMAND.match(text):
        return labels.get(f"command-{found[1]}")
    if (found := PAGE.fullmatch(text)) and found[1] in app.env.found_docs:
        return found[1], ""
    if ERROR.fullmatch(text):
        return labels.get(text.lower())
    for kind in ("tool", "event"):
        if (name := f"{kind}-{text}") in labels:
            return labels[name]
    return None if text in ONLY else standard.objects.get(("confval", text))


def link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for literal in list(_free(doctree)):
        target = target_of(literal.astext(), app)
        if target is None:
            continue
        where, anchor = target
        if where == page and (not anchor or anchor in _above(literal)):
            continue  # it is there
        uri = app.builder.get_relative_uri(page, where) if where != page else ""
        uri = f"{uri}#{anchor}" if anchor else uri
        reference = nodes.reference("", "", internal=True, refuri=uri)
        literal.replace_self(reference)
        reference += literal


def _free(doctree: nodes.document) -> Iterator[nodes.literal]:
    """Those that are in no heading and no link."""
    for literal in doctree.findall(nodes.literal):
        parent = literal.parent
        while parent is not None and not isinstance(parent, nodes.title | nodes.reference):
            parent = parent.parent
        if parent is None:
            yield literal


def _above(node: nodes.Node) -> set[str]:
    ids: set[str] = set()
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.Element):
            ids.update(node.get("ids", ()))
    return ids


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
