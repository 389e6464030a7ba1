"""The reference shows what each tool answers, and that is what it answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from answers import FILE, collect, paths
from emceepee_trio.tools import TOOLBOX

pytestmark = pytest.mark.once

DEPTH = 3
"""Of names that are compared. What is deeper is often what a server has said."""

SHALLOW = {"await_activity", "get_server_status"}
"""What is in it depends on when one asks."""


async def test_each_tool_answers_what_is_shown_of_it(tmp_path: Path) -> None:
    shown, now = json.loads(FILE.read_text("utf-8")), await collect(tmp_path)
    assert shown.keys() == now.keys() == {tool.name for tool in TOOLBOX.tools}
    for name, said in now.items():
        depth = 1 if name in SHALLOW else DEPTH
        told = "run: python tests/support/answers.py; python docs/generate.py"
        assert set(paths(said, depth)) == set(paths(shown[name], depth)), f"{name}: {told}"
