"""What pages say that is generated from the code is what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from emceepee_trio.tools import TOOLBOX

pytestmark = pytest.mark.once

DOCS = Path(__file__).parents[1] / "docs"
GENERATE = runpy.run_path(str(DOCS / "generate.py"))


@pytest.mark.parametrize("page", GENERATE["PAGES"])
def test_a_page_says_what_the_code_says(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert GENERATE["generated"](page, text) == text, "run: python docs/generate.py"


def test_every_tool_and_setting_can_be_read_in_the_tree() -> None:
    tools = (DOCS / "reference" / "tools.rst").read_text("utf-8")
    assert all(f"\n``{tool.name}``\n--" in tools for tool in TOOLBOX.tools)
    settings = (DOCS / "reference" / "configuration.rst").read_text("utf-8")
    assert "   * - ``allowed_tools``\n     - list of string\n" in settings
