"""What is said where a person sees it: tables as wide as it is, colours, and what takes long.

Everybody else, a pipe or a file, gets the plain lines of `output`, which programs can cut.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

import attrs

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
    """A line that begins with *mark*, which a terminal may show in a colour, and folds by words.

    Raises:
        CannotWrite: it has not arrived.
    """
    if not is_terminal():
        say(line)
        return
    from rich.text import Text

    text = Text(escaped(line))
    text.stylize(STYLES.get(mark, ""), 0, len(mark))
    _print(text)


@attrs.define(eq=False)
class Ticker:
    """Says what is being done, and for how long."""

    _text: str
    _pauses: bool = attrs.field(default=False, init=False)
    _width: int = attrs.field(default=0, init=False)
    """What stands there now."""
    _lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @contextmanager
    def paused(self) -> Generator[None]:
        """The terminal is somebody else's in the block."""
        self._pauses = True
        self._clear()
        try:
            yield
        finally:
            self._pauses = False

    def run(self, done: threading.Event) -> None:
        seconds = 0
        while not done.wait(1):
            seconds += 1
            if not self._pauses:
                self._write(f"{self._text} ... {seconds} s")
        self._clear()

    def _clear(self) -> None:
        with self._lock:
            if self._width:
                self._put(f"\r{' ' * self._width}\r")
                self._width = 0

    def _write(self, text: str) -> None:
        with self._lock:
            if not self._pauses:
                said = in_ascii(text)[: shutil.get_terminal_size().columns - 1]
                self._put(f"\r{said.ljust(self._width)}")
                self._width = len(said)

    def _put(self, text: str) -> None:
        # Not by way of the log, which has what is written to stderr, and writes lines.
        with suppress(OSError):  # there may be nobody left to be told
            os.write(2, text.encode())


_SAID: ContextVar[Ticker | None] = ContextVar("said", default=None)
"""What is being done."""


@contextmanager
def working(text: str) -> Generator[Ticker]:
    """Say on a terminal what is being done in the block, and for how long, if it takes a second.

    What is done for something else that is said already is not said.
    """
    if (said := _SAID.get()) is not None:
        yield said
        return
    ticker = Ticker(escaped(text))
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield ticker
        return
    done = threading.Event()
    beside = threading.Thread(target=ticker.run, args=(done,), daemon=True)
    beside.start()
    token = _SAID.set(ticker)
    try:
        yield ticker
    finally:
        _SAID.reset(token)
        done.set()
        beside.join()


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


def _print(shown: RenderableType) -> None:
    from rich.console import Console

    try:
        # It honours NO_COLOR.
        Console(highlight=False).print(shown)
    except OSError as error:
        raise CannotWrite from error
    flush()
