"""The pictures of the documentation can be made, as they are: of a page that works, at that size.

They go into a folder of the test, or into ``$PICTURES`` to be looked at; ``nox -s pictures`` makes
those that are shown. Fonts differ between machines, so what is on them is for people to compare.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
import trio

from page_pictures import DOCS, SCENES, Camera, main

pytestmark = pytest.mark.once


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """Of each picture, as its head says."""
    return {
        path.name: struct.unpack(">II", path.read_bytes()[16:24]) for path in folder.glob("*.png")
    }


def test_pictures_are_made_of_what_the_documentation_shows(tmp_path: Path) -> None:
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    trio.run(main, folder, Camera.of_the_docs, SCENES)
    assert sizes(folder) == sizes(DOCS)
    for shown in DOCS.glob("*.png"):
        # An empty or broken page is a tenth of that.
        assert (folder / shown.name).stat().st_size > shown.stat().st_size / 2, shown.name
    named = (DOCS.parent / "reference" / "page.rst").read_text("utf-8")
    assert all(f"/pictures/{name}" in named for name in sizes(DOCS))
