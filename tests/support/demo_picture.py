"""The picture of ``emceepee demo``: ``python tests/support/demo_picture.py`` draws it anew.

It is text in an SVG that needs nothing from elsewhere, no font and no script.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape, unescape
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "demo.svg"
COLUMN, ROW, MARGIN = 8.4, 19, 18
BACKGROUND, BAR = "#1d1f21", "#2b2e31"
COLOURS = ((r"\$ ", "#b5bd68"), (r"\d\. ", "#81a2be"), (r" +-> ", "#f0c674"), ("", "#c5c8c6"))
"""Of lines, by how they begin."""

CHANGING = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|127\.0\.0\.1:\d+|\d{4}-\d\d-\d\dT[\d:.]+Z")


def drawn(printed: str) -> str:
    lines = ["$ emceepee demo", *printed.rstrip().splitlines()]
    width = 2 * MARGIN + COLUMN * max(map(len, lines))
    height = 2 * MARGIN + ROW * (len(lines) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}">',
        f"<style>text{{font:14px monospace;white-space:pre}}rect{{fill:{BACKGROUND}}}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8"/>',
        f'<path fill="{BAR}" d="M0 28V8a8 8 0 0 1 8-8H{width - 8:.0f}a8 8 0 0 1 8 8v20z"/>',
    ]
    for number, line in enumerate(lines):
        if not line:
            continue
        colour = next(colour for pattern, colour in COLOURS if re.match(pattern, line))
        indent = len(line) - len(line.lstrip())
        said = line.lstrip()
        x, y = MARGIN + COLUMN * indent, 28 + MARGIN + ROW * (number + 0.5)
        parts.append(
            f'<text x="{x:.1f}" y="{y:g}" fill="{colour}" textLength="{COLUMN * len(said):.1f}"'
            f' data-indent="{indent}">{escape(said, quote=False)}</text>'
        )
    return "\n".join((*parts, "</svg>", ""))


def lines_of(picture: str) -> list[str]:
    """What is written there, but for what is another thing each time."""
    written = re.findall(r'data-indent="(\d+)">(.*)</text>', picture)
    return [CHANGING.sub("…", " " * int(indent) + unescape(line)) for indent, line in written]


if __name__ == "__main__":
    demo = subprocess.run(
        [sys.executable, "-m", "emceepee_trio", "demo"], capture_output=True, text=True, check=True
    )
    FILE.write_text(drawn(demo.stdout), "utf-8")
