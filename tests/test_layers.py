"""Imports go down only, the model is pure, and only commands print."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path

import pytest

import emceepee_trio

pytestmark = pytest.mark.once

NAME = "emceepee_trio"
SOURCE = Path(__file__).parent.parent / NAME
PAGE = (SOURCE.parent / "docs" / "architecture.rst").read_text("utf-8")

# Each may import what stands below it; two on one line do not know each other.
LAYERS = (
    ("__main__",),
    ("cli",),
    ("commands", "asgi", "embedding"),
    ("daemon", "bridge"),
    ("systemd",),
    ("front",),
    ("web",),
    ("tools",),
    ("codemode",),
    ("session",),
    ("backend", "serving"),
    ("telemetry",),
    ("waits",),
    ("model",),
)
RANK = {layer: rank for rank, layers in enumerate(LAYERS) for layer in layers}

# For everybody but the model; each may import only these.
SHARED = {
    # The package itself, for its version; it imports what it offers when it is asked for it.
    "": {"config", "embedding"},
    "errors": {""},
    "views": {""},
    "sources": {"", "errors"},
    "config": {"", "errors", "model", "sources", "views"},
    "logs": {"", "errors", "config", "model"},
    "journal": {"", "logs", "model"},
    "tracing": {"", "model"},
}

# A program of its own, started by one module, as any other server would be.
APART = "demo_backend"

CLOCKS_AND_IO = {
    *("anyio", "asyncio", "http", "httpx", "httpx2", "mcp", "mcp_types", "multiprocessing", "os"),
    *("queue", "random", "select", "selectors", "shutil", "signal", "socket", "subprocess"),
    *("tempfile", "threading", "time", "trio"),
}
FORBIDDEN = {
    "model": CLOCKS_AND_IO,
    "waits": CLOCKS_AND_IO - {"trio"},
    "serving": {"mcp", "mcp_types"},
}

# Of layers that are not: what decides, beside what does it.
PURE = ("backend.lifecycle", "backend.retries")

PRINTERS = {"cli", "commands"}
FINDERS = {"cli"}


def complaints(source: Path) -> list[str]:
    files = {module_name(path, source): path for path in sorted(source.rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(), str(path)) for name, path in files.items()}
    found = []
    for name, tree in trees.items():
        package = name if files[name].stem == "__init__" else name.rpartition(".")[0]
        found += [
            f"{name} imports {imported}: {reason}"
            for imported in sorted(set(imports(tree, package, known=set(trees))))
            if (reason := objection(layer_of(name), imported))
        ]
        if layer_of(name) not in PRINTERS and uses(tree, "print"):
            found.append(f"{name} prints: only commands do")
        if layer_of(name) not in FINDERS and uses(tree, "import_module", "__import__"):
            found.append(f"{name} imports by name: only the command line finds its commands so")
    namers = [name for name, tree in trees.items() if names_the_demo(tree)]
    if len(namers) > 1:
        found.append(f"{' and '.join(namers)} name {APART}: only its spawner does")
    return found


def module_name(path: Path, source: Path) -> str:
    parts = path.relative_to(source.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def layer_of(module: str) -> str:
    """The first part below the package, or nothing for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def imports(tree: ast.AST, package: str, *, known: set[str]) -> Iterator[str]:
    """Everything imported anywhere in it; under TYPE_CHECKING and in functions counts too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                submodule = f"{origin}.{alias.name}"
                yield submodule if submodule in known else origin


def objection(layer: str, imported: str) -> str | None:
    top, _, _ = imported.partition(".")
    if top != NAME:
        return f"{layer} must not" if top in FORBIDDEN.get(layer, ()) else None
    target = layer_of(imported)
    for each in (layer, target):
        if each not in RANK and each not in SHARED and each != APART:
            return f"{each} has no layer"
    if target == APART:
        return f"{APART} is a program, not a library"
    if layer == APART:
        return f"{APART} knows nothing of ours"
    if layer == target:
        return None
    if layer in SHARED:
        return None if target in SHARED[layer] else f"{layer or NAME} must not"
    if target in SHARED:
        return (
            "the model is below it" if layer == "model" and target not in {"", "errors"} else None
        )
    return None if RANK[layer] < RANK[target] else f"{target} is not below {layer}"


def uses(tree: ast.AST, *names: str) -> bool:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
                return True
    return False


def names_the_demo(tree: ast.AST) -> bool:
    """As a module to run or a file to start; prose may mention it."""
    strings = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return any(value in {APART, f"{APART}.py", f"{NAME}.{APART}"} for value in strings)


def test_the_package_keeps_to_its_layers() -> None:
    assert complaints(SOURCE) == []


# An error and the event of the same name are told apart by everybody who is told of either.
HOMONYMS = {"ServerDisconnected"}


def test_no_two_things_have_one_name() -> None:
    names = [
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert {name for name in names if names.count(name) > 1} - HOMONYMS == set()


def test_no_room_is_crowded() -> None:
    rooms = [path.parent for path in SOURCE.rglob("*.py") if path.name != "__init__.py"]
    assert [str(room) for room in {*rooms} if rooms.count(room) > 12] == []


def rooms() -> Iterator[tuple[str, str, set[str]]]:
    """Each package below our own, with its docstring and what is in it."""
    for init in SOURCE.rglob("*/__init__.py"):
        doc = ast.get_docstring(ast.parse(init.read_text()))
        modules = {path.stem for path in init.parent.glob("*.py")} - {"__init__"}
        packages = {path.parent.name for path in init.parent.glob("*/__init__.py")}
        yield module_name(init, SOURCE), doc or "", modules | packages


@pytest.mark.parametrize(("doc", "there"), [pytest.param(d, t, id=r) for r, d, t in rooms()])
def test_a_room_says_what_is_in_it(doc: str, there: set[str]) -> None:
    assert there - set(re.findall(r"`(\w+)`", doc)) == set()


def test_what_tests_share_is_named_by_its_role() -> None:
    page = (SOURCE.parent / "docs" / "testing.rst").read_text("utf-8")
    roles = page.partition("\nWho plays whom\n")[2].partition("\nRaces\n")[0]
    there = {path.stem for path in (SOURCE.parent / "tests" / "support").glob("*.py")}
    assert there ^ set(re.findall(r"``(\w+)``", roles)) == {"mutants", "npx", "uvx"}


def test_the_map_shows_every_room() -> None:
    rooms = PAGE.partition("\nThe rooms\n")[2].partition("\nThe ways of data\n")[0]
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert there - {"__init__", "__pycache__"} - set(re.findall(r"\w+", rooms)) == set()


WHERE = PAGE.partition("\nWhere would I put …\n")[2].partition("\nWords\n")[0]


def named(text: str) -> tuple[list[Path], set[str]]:
    """Files and folders that it names, as they are found from the package or the root; and names
    in these."""
    literals = re.findall(r"``([^`]+)``", text)
    paths = [each for each in literals if "/" in each or each.endswith(".py")]
    found = [SOURCE / each for each in paths if not each.startswith(("tests/", "docs/"))]
    found += [SOURCE.parent / each for each in paths if each.startswith(("tests/", "docs/"))]
    return found, {re.split(r"\W", each)[0] for each in literals if each not in paths}


def test_whoever_asks_where_to_put_something_is_sent_to_what_is_there() -> None:
    files, _ = named(WHERE)
    assert len(files) > 20
    assert [path for path in files if not path.exists()] == []


def places() -> Iterator[tuple[str, list[str]]]:
    _, _, table = WHERE.partition(".. list-table::")
    for row in re.findall(r"   \* - ((?:.+\n)(?:     .+\n)+)", table.partition("\n*")[0]):
        what, *cells = (cell.strip() for cell in re.split(r"\n     - ", row))
        yield what, cells


@pytest.mark.parametrize(("what", "cells"), [pytest.param(w, c, id=w) for w, c in places()])
def test_a_new_room_takes_three_files_each_of_which_is_found(what: str, cells: list[str]) -> None:
    assert len(cells) == 3
    for cell in cells:
        files, names = named(cell)
        known = "".join(path.read_text() for path in files if path.is_file())
        assert files, cell
        assert {name for name in names if not re.search(rf"\b{name}\b", known)} == set(), cell


def test_there_is_a_place_for_each_of_the_five() -> None:
    rooms = ["a page for people", "another view of the tools", "an OAuth client for servers"]
    assert [what for what, _ in places()] == [*rooms, "a store", "a listener"]


@pytest.mark.parametrize("module", PURE)
def test_what_decides_knows_no_clock_and_waits_for_nothing(module: str) -> None:
    path = SOURCE.joinpath(*module.split(".")).with_suffix(".py")
    package = f"{NAME}.{module.rpartition('.')[0]}"
    found = {
        name.partition(".")[0]
        for name in imports(ast.parse(path.read_text()), package, known=set())
    }
    assert found.isdisjoint(CLOCKS_AND_IO)


def test_the_package_under_test_is_the_one_that_was_read() -> None:
    (installed,) = emceepee_trio.__path__
    assert {p.relative_to(SOURCE) for p in SOURCE.rglob("*.py")} == {
        p.relative_to(installed) for p in Path(installed).rglob("*.py")
    }


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("model/a.py", "import trio", "{m} imports trio: model must not"),
        ("model/a.py", "import os.path", "{m} imports os.path: model must not"),
        ("model/a.py", "from time import monotonic", "{m} imports time: model must not"),
        ("waits/a.py", "from mcp.client import x", "{m} imports mcp.client: waits must not"),
        (
            "model/a.py",
            "from emceepee_trio import config",
            "{m} imports emceepee_trio.config: the model is below it",
        ),
        (
            "backend/a.py",
            "def f():\n    from emceepee_trio.session.calls import x",
            "{m} imports emceepee_trio.session.calls: session is not below backend",
        ),
        (
            "waits/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..session import calls",
            "{m} imports emceepee_trio.session.calls: session is not below waits",
        ),
        (
            "waits/__init__.py",
            "from ..session.calls import x",
            "emceepee_trio.waits imports emceepee_trio.session.calls: session is not below waits",
        ),
        (
            "commands/a.py",
            "import emceepee_trio.asgi",
            "{m} imports emceepee_trio.asgi: asgi is not below commands",
        ),
        (
            "config.py",
            "from emceepee_trio import session",
            "{m} imports emceepee_trio.session: config must not",
        ),
        (
            "__init__.py",
            "from . import errors",
            "emceepee_trio imports emceepee_trio.errors: emceepee_trio must not",
        ),
        (
            "misc.py",
            "from . import errors",
            "{m} imports emceepee_trio.errors: misc has no layer",
        ),
        (
            "demo_backend.py",
            "from .errors import x",
            "{m} imports emceepee_trio.errors: demo_backend knows nothing of ours",
        ),
        (
            "commands/a.py",
            "from emceepee_trio import demo_backend",
            "{m} imports emceepee_trio.demo_backend: demo_backend is a program, not a library",
        ),
        ("front/a.py", "print('x')", "{m} prints: only commands do"),
        (
            "front/a.py",
            "import importlib\nimportlib.import_module('emceepee_trio.cli')",
            "{m} imports by name: only the command line finds its commands so",
        ),
        (
            "front/a.py",
            "START = ['python', '-m', 'emceepee_trio.demo_backend']",
            "emceepee_trio.backend.children.spec and {m} name demo_backend: only its spawner does",
        ),
    ],
)
def test_what_breaks_the_rules_is_found(
    path: str, text: str, complaint: str, tmp_path: Path
) -> None:
    source = tmp_path / NAME
    good = {
        "__init__.py": "__version__ = '1'",
        "errors.py": "from . import __version__",
        "config.py": "from .errors import x\nfrom .model import a",
        "cli.py": "from emceepee_trio.commands import serve\nprint('usage')",
        "commands/serve.py": "from ..front import a\nprint('here')",
        "demo_backend.py": "import os",
        "asgi.py": "",
        "tools/__init__.py": "from ..session.calls import x",
        "session/__init__.py": "from .calls import x",
        "session/calls.py": "import time\nfrom ..config import x\nfrom ..model.ids import y",
        "backend/children/spec.py": "import mcp\nSTART = 'emceepee_trio.demo_backend'",
        "waits/slot.py": "import trio\nfrom .feed import x\nfrom ..errors import y",
        "model/ids.py": "import attrs\nfrom .. import errors, __version__",
    }
    for name, content in good.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(content)
    assert complaints(source) == []

    (source / path).parent.mkdir(exist_ok=True)
    (source / path).write_text(text)
    assert complaints(source) == [complaint.format(m=f"{NAME}.{path[:-3].replace('/', '.')}")]
