"""What is said where a person sees it: tables as wide as it is, colours, and what takes long.

Everybody else, a pipe or a file, gets the plain lines of `output`, which programs can cut.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...model.text.show import escaped, in_ascii
from .output import CannotWrite, flush, say, table

if TYPE_CHECKING:
    from rich.console import RenderableType

STYLES = {
    **dict.fromkeys(("new", "add", "change", "new file", "restore", "connected", "ok"), "green"),
    **dict.fromkeys(("conflict", "warning", "reconnecting", "disabled"), "yellow"),
    **dict.fromkeys(("left alone", "error", "broken"), "red"),
    **dict.fromkeys(("same", "left out", "nothing", "idle"), "dim"),
}
"""Words that stand alone in a cell; what they say they also say without a colour."""


def is_terminal() -> bool:
    """Whether a person sees it, and sees more than letters."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return not is_dumb and sys.stdout.isatty() and sys.stdout.encoding.lower() == "utf-8"


def show_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """
    Raises:
        CannotWrite: it has not arrived.
    """
    if is_terminal():
        _print(_rich_table(titles, rows))
    else:
        say("\n".join(table(titles, rows)))


def lines_of(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A table that is part of something longer, without colours."""
    if not is_terminal():
        return table(titles, rows)
    from io import StringIO

    from rich.console import Console

    width = shutil.get_terminal_size().columns
    console = Console(file=StringIO(), width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(_rich_table(titles, rows))
    return [line.rstrip() for line in captured.get().rstrip("\n").split("\n")]


def say_marked(mark: str, line: str) -> None:
    """A line that begins with *mark*, which a terminal may show in a colour.

    Raises:
        CannotWrite: it has not arrived.
    """
    if not is_terminal():
        say(line)
        return
    from rich.text import Text

    text = Text(escaped(line))
    text.stylize(STYLES.get(mark, ""), 0, len(mark))
    _print(text, wraps=False)


@contextmanager
def working(text: str) -> Generator[None]:
    """Say on a terminal what is being done in the block, and for how long, if it takes a second."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    done = threading.Event()
    beside = threading.Thread(target=_tell_time, args=(escaped(text), done), daemon=True)
    beside.start()
    try:
        yield
    finally:
        done.set()
        beside.join()


def _tell_time(text: str, done: threading.Event) -> None:
    seconds, width = 0, 0
    try:
        while not done.wait(1):
            seconds += 1
            said = in_ascii(f"{text} ... {seconds} s")[: shutil.get_terminal_size().columns - 1]
            # Not by way of the log, which has what is written to stderr, and writes lines.
            os.write(2, f"\r{said.ljust(width)}".encode())
            width = len(said)
        if width:
            os.write(2, f"\r{' ' * width}\r".encode())
    except OSError:
        pass  # there is nobody left to be told


def _rich_table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for title in titles:
        shown.add_column(title.capitalize(), overflow="fold")
    for row in rows:
        # Whatever stands in a cell is text, and neither markup nor for the terminal to obey.
        shown.add_row(*(Text(escaped(str(cell)), STYLES.get(str(cell), "")) for cell in row))
    return shown


def _print(shown: RenderableType, *, wraps: bool = True) -> None:
    from rich.console import Console

    try:
        # It honours NO_COLOR.
        Console(highlight=False, soft_wrap=not wraps).print(shown)
    except OSError as error:
        raise CannotWrite from error
    flush()
