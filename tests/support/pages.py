"""What pages show: blocks of code, each with its language, and the commands in them.

Reads reStructuredText by its lines, since what is wanted of it is only where blocks begin and end.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.rst"), *(ROOT / "docs").rglob("*.rst")])

_BLOCK = re.compile(r"(?P<indent> *)\.\. code-block:: *(?P<kind>\S*)$")
_BARE = re.compile(r"(?!\s*\.\. ).*::\s*$")
_OPTION = re.compile(r"\s*:(?P<name>\w+): *(?P<value>.*)$")
_INLINE = re.compile(r"``(emceepee(?: [^`]+)?)``")
_BETWEEN = {"|", "||", "&", "&&", ";", "(", ")"}


@attrs.frozen
class Block:
    page: Path
    line: int
    kind: str
    text: str
    classes: str = ""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@attrs.frozen
class Command:
    """What is typed at a prompt, and the lines that are shown below it."""

    block: Block
    typed: str
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.block} {self.typed}"

    @property
    def programs(self) -> list[list[str]]:
        """The words of each program that it runs."""
        within = re.findall(r"\$\(([^)]*)\)", self.typed)
        return [words for text in (self.typed, *within) for words in _programs(text)]


def blocks() -> Iterator[Block]:
    for page in PAGES:
        yield from _blocks(page)


def _blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text("utf-8").splitlines()
    for number, line in enumerate(lines):
        found = _BLOCK.match(line)
        if found is None and not _BARE.match(line):
            continue
        inner = f"{found['indent'] if found else ''}   "
        body, classes = list[str](), ""
        for below in lines[number + 1 :]:
            if below.strip() and not below.startswith(inner):
                break
            option = _OPTION.match(below)
            if option and not any(map(str.strip, body)):
                classes = option["value"] if option["name"] == "class" else classes
            else:
                body.append(below[len(inner) :])
        text = "\n".join(body).strip("\n")
        if found or text:
            yield Block(page, number + 1, found["kind"] if found else "", text, classes)


def commands() -> Iterator[Command]:
    """Whatever is typed in the pages, in their order."""
    for block in blocks():
        if block.kind == "console":
            yield from typed(block)


def typed(block: Block) -> Iterator[Command]:
    prompt: list[str] = []
    shown: list[str] = []
    for line in block.text.splitlines():
        if line.startswith(("$ ", "# ")):
            if prompt:
                yield Command(block, "\n".join(prompt), tuple(shown))
            prompt, shown = [line[2:]], []
        elif line.startswith("> ") and not shown:
            prompt.append(line[2:])
        else:
            shown.append(line)
    if prompt:
        yield Command(block, "\n".join(prompt), tuple(shown))


def inline() -> Iterator[tuple[Path, list[str]]]:
    """Commands of ours that are named in a sentence, as words; they may lack what is needed."""
    for page in PAGES:
        prose = re.sub(r"\s+", " ", page.read_text("utf-8"))
        for found in _INLINE.finditer(prose):
            words = shlex.split(found[1])
            yield page, words


def _programs(text: str) -> Iterator[list[str]]:
    first, _, _ = text.partition(
        "\n"
    )  # what a program is given on its standard input is no program
    lexer = shlex.shlex(first, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _BETWEEN:
            if words:
                yield words
            words = []
        elif word.startswith((">", "<")):
            next(lexer, None)
        else:
            words.append(word)
    if words:
        yield words


def looks_like(shown: tuple[str, ...] | list[str], printed: str) -> bool:
    """Whether it was *printed*, where ``…`` is anything in a line, and alone any lines.

    How wide a column is depends on what is in it, such as where this Python is.
    """
    lines = [_narrow(line) for line in printed.strip("\n").splitlines()]
    pattern = ""
    for line in shown:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, _narrow(line).split("…"))) + r"\n"
    return re.fullmatch(pattern, "\n".join(lines) + "\n") is not None


def _narrow(line: str) -> str:
    return re.sub(r"(?<=\S) {2,}", "  ", line.rstrip())
