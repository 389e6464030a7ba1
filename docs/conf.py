"""Sphinx: the theme it brings, and our own extension for what is generated from the code."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "emceepee-trio"
author = "the emceepee-trio authors"
version = release = version_of("emceepee-trio")

extensions = ["reference", "lanes"]
exclude_patterns = ["_build"]
default_role = "literal"
smartquotes = False  # defaults are shown as JSON

html_theme = "alabaster"
html_theme_options = {"description": "One MCP connection to every MCP server"}
html_show_copyright = False
