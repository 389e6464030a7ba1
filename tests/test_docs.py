"""What pages say that is generated from the code is what the code says, and what they show is so.

Here commands and configurations are read as the program reads them, which is quick. Those that can
be run are run by ``tests/docs``.
"""

from __future__ import annotations

import configparser
import json
import re
import runpy
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

import pages
from emceepee_trio import errors
from emceepee_trio.cli import COMMANDS, parsers
from emceepee_trio.config import Config, load
from emceepee_trio.model.json.fields import fields_of
from emceepee_trio.tools import TOOLBOX
from pages import Block, Command

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATE = runpy.run_path(str(DOCS / "generate.py"))

FOREIGN = """
cat claude code codex cp curl echo eval hypercorn install journalctl kill ln loginctl mkdir mypy nox
npx openssl pip pipx pytest python python3 ruff ssh systemctl uv uvx
"""
"""Programs of others that pages name: no way to try them here, so no word is misspelt there."""

PLACEHOLDER = re.compile(r"[A-Z][A-Z_-]*|…")


def by_page(found: Block | Command) -> str:
    return str(found).replace("\n", " ")[:80]


@pytest.mark.parametrize("page", GENERATE["PAGES"])
def test_a_page_says_what_the_code_says(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert GENERATE["generated"](page, text) == text, "run: python docs/generate.py"


def test_every_tool_and_setting_can_be_read_in_the_tree() -> None:
    tools = (DOCS / "reference" / "tools.rst").read_text("utf-8")
    assert all(f"\n``{tool.name}``\n--" in tools for tool in TOOLBOX.tools)
    settings = (DOCS / "reference" / "configuration.rst").read_text("utf-8")
    missing = [
        f"{cls.__name__}.{a.name}"
        for cls in classes_of(Config)
        for a in fields_of(cls)
        if not re.search(rf"^\.\. confval:: (\w+\.)*{a.name}$", settings, re.MULTILINE)
    ]
    assert not missing
    assert ".. confval:: servers.allowed_tools\n\n   list of string\n" in settings


def classes_of(kind: Any) -> set[type]:
    """That class of settings, and those of what is in it."""
    if isinstance(kind, type) and attrs.has(kind):
        return {kind}.union(*(classes_of(a.type) for a in fields_of(kind)))
    return set().union(*map(classes_of, get_args(kind)))


def test_every_code_of_an_error_has_an_anchor() -> None:
    page = (DOCS / "reference" / "errors.rst").read_text("utf-8")
    codes = {
        each.code
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, errors.ToolError)
    }
    assert codes == set(re.findall(r"^\.\. _(TOOL_ERR_\w+):$", page, re.MULTILINE))


@pytest.mark.parametrize("block", list(pages.blocks()), ids=by_page)
def test_a_block_is_what_it_says_that_it_is(block: Block, tmp_path: Path) -> None:
    match block.kind:
        case "json":
            said = json.loads(block.text)
            if block.page.name != "tools.rst":  # what tools answer, tests/docs/test_results.py asks
                check_json(said, tmp_path)
        case "console":
            assert list(pages.typed(block)), "nothing is typed there"
        case "python":
            body = textwrap.indent(block.text, "    ")
            compile(f"async def script():\n{body}", str(block), "exec")
        case "ini":
            configparser.ConfigParser(interpolation=None, strict=False).read_string(block.text)
        case "nginx":
            assert block.text.count("{") == block.text.count("}") > 0
        case kind:
            assert kind in ("text", "yaml"), "no language that is known, so nobody looks at it"


def check_json(said: Any, folder: Path) -> None:
    """A configuration is one that we take, without a warning; or a client's, with us in it."""
    known = {a.name for a in fields_of(Config)} | {"mcpServers"}
    if not isinstance(said, dict) or not said.keys() & known:
        return
    file = folder / "config.json"
    file.write_text(json.dumps(said), "utf-8")
    named = re.findall(r"\$\{(\w+)\}", file.read_text("utf-8"))
    environ = {"HOME": str(folder), **{name: f"{name:x<32}" for name in named}}
    loaded = load(file, environ)
    for warning in loaded.warnings:
        assert warning == "mcpServers.emceepee: skipped, it is emceepee itself"
        entry = said["mcpServers"]["emceepee"]
        if "command" in entry:
            check(entry["args"])


@pytest.mark.parametrize("command", list(pages.commands()), ids=by_page)
def test_a_command_is_one_that_there_is(command: Command) -> None:
    for name, *words in command.programs:
        if name == "emceepee":
            check(words)
        elif name != "." and "/" not in name:
            assert name in FOREIGN.split(), "ours? if not, it is to be added to those of others"
            if name in ("claude", "codex") and "--" in words:
                inner = words[words.index("--") + 1 :]
                assert inner[0] == "emceepee"
                check(inner[1:])


def check(words: list[str]) -> None:
    """That our own parser takes them."""
    parser, _ = parsers(COMMANDS)
    try:
        _, strangers = parser.parse_known_args(words)
    except SystemExit as ended:  # of --version, but not of a mistake
        status, strangers = ended.code, []
    else:
        status = 0
    assert (status, strangers) == (0, []), words


def test_a_command_in_a_sentence_has_only_options_that_there_are() -> None:
    _, commands = parsers(COMMANDS)
    wrong = []
    for page, (_, *words) in pages.inline():
        if not words or PLACEHOLDER.fullmatch(words[0]) or words[0].startswith("-"):
            continue
        found = commands.get(words[0])
        known = list(_options(found)) if found is not None else []
        strange = [word for word in words if word.startswith("--") and word not in known]
        if found is None or strange:
            wrong.append((str(page.relative_to(pages.ROOT)), words))
    assert not wrong


def _options(parser: Any) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings


def test_a_file_that_is_named_is_there() -> None:
    folders = [ROOT, ROOT / "emceepee_trio", ROOT / "tests", ROOT / "docs"]
    named = re.compile(r"``([\w.-]+(?:/[\w.-]+)+\.(?:py|rst|json|js|css|svg|service))``")
    missing = [
        (str(page.relative_to(ROOT)), name)
        for page in pages.PAGES
        for name in named.findall(page.read_text("utf-8"))
        if not any((folder / name).exists() for folder in folders)
    ]
    assert not missing


def test_no_picture_or_style_is_from_elsewhere() -> None:
    files = [each for each in DOCS.rglob("*") if each.suffix in (".css", ".svg", ".js")]
    outside = re.compile(r"""(url\(|@import|src=|href=)\s*["']?(https?:)?//""")
    assert len(files) > 1
    assert not [each.name for each in files if outside.search(each.read_text("utf-8"))]
