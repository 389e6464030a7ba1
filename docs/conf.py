"""Sphinx: the theme, and our own extensions for what is generated and drawn from the code."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "emceepee-trio"
author = "the emceepee-trio authors"
version = release = version_of("emceepee-trio")

extensions = ["reference", "lanes", "linked", "states", "tree"]
exclude_patterns = ["_build"]
default_role = "literal"
smartquotes = False  # defaults are shown as JSON

html_theme = "furo"
html_title = f"emceepee {version}"
html_static_path = ["_static"]
html_css_files = ["ours.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
