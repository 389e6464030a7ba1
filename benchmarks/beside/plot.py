"""A picture of what ``peers.py --json`` has written; run by a Python that has matplotlib.

python plot.py JSON PICTURE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "peers"  # the same numbers are the same file
import matplotlib.pyplot as plt  # noqa: E402 - once it knows that there is no screen

SHOWN = {"p50_ms": "median of a call, ms", "cpu_us": "processor time of a call, µs"}
COLOURS = {"floor": "0.75", "ours": "tab:blue", "peer": "tab:orange"}


def draw(rows: list[dict[str, Any]], picture: Path) -> None:
    ways = list(dict.fromkeys(row["way"] for row in rows))
    counts = [sum(row["way"] == way for row in rows) for way in ways]
    figure, grid = plt.subplots(
        len(ways),
        len(SHOWN),
        figsize=(11, 0.34 * sum(counts) + len(ways)),
        squeeze=False,
        sharey="row",
        gridspec_kw={"height_ratios": counts},
        layout="constrained",
    )
    for way, line in zip(ways, grid, strict=True):
        here = [row for row in rows if row["way"] == way][::-1]
        for (name, title), axes in zip(SHOWN.items(), line, strict=True):
            values = [median(row["samples"].get(name) or [0]) for row in here]
            colours = [COLOURS[row["role"]] for row in here]
            bars = axes.barh([row["name"] for row in here], values, color=colours)
            said = [f"{each:.0f}" if each >= 100 else f"{each:.2f}" for each in values]
            axes.bar_label(bars, said, padding=3)
            axes.margins(x=0.12)
            axes.spines[["top", "right"]].set_visible(False)
            axes.set_xlabel(title)
        line[0].set_title(way, loc="left")
    figure.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text("utf-8"))["rows"], Path(sys.argv[2]))
