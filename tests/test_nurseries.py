"""Who shares a nursery with others is begun behind a firewall, which alone catches everything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import emceepee_trio

pytestmark = pytest.mark.once

SOURCE = Path(emceepee_trio.__file__).parent
MAP = Path(__file__).parents[1] / "docs" / "architecture.rst"
FIREWALL = "waits/firewall.py"

OWN = {
    "backend/connections/client.py": {"answer_all": "of one call"},
    "backend/connections/connect.py": {"_open_connection": "of one connection"},
    "backend/http/old.py": {"open_old": "of one connection"},
    "backend/http/streamable.py": {"_tell": "of one connection"},
    "backend/connections/listening.py": {"run": "of one chore"},
    "backend/children/process.py": {"_run": "of one child", "open_process": "of one child"},
    "commands/demo.py": {"_tour": "of a command", "_daemon": "of a command"},
    "daemon.py": {"run": "of the process"},
    "serving/listen.py": {"serve_http": "of the process; each connection has a firewall"},
    "front/news.py": {"run": "of one connection's messages"},
    "front/faces/native/news.py": {"run": "of one connection's news"},
    "front/log_messages.py": {"run": "of one connection's messages"},
    "front/pipes/stdio.py": {"serve_stdio": "of the process", "_serve": "of its one connection"},
    "tools/common/pages.py": {"_are_done": "of one call"},
    "tools/tasks.py": {"_settled": "of one request"},
    "web/wire.py": {"while_connected": "of one request"},
    "web/page/common/live.py": {"__anext__": "of one stream"},
}
"""Nurseries that nobody else lives in: what fails there is to fail as a whole."""

BLIND = {
    "bridge/relay.py": "of one request, in a thread of its own; becomes its answer",
    "journal.py": "of a reader; whoever notes is in the middle of something",
    "logs/lines.py": "becomes a line that says so; the firewall itself logs",
}


def starts(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Where tasks are started: in which function, and in which line."""
    for outer in ast.walk(tree):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in _body(outer):
                if isinstance(node, ast.Call) and _is_start(node.func):
                    yield outer.name, node.lineno
                for argument in node.args if isinstance(node, ast.Call) else ():
                    if _is_start(argument):
                        yield outer.name, argument.lineno


def _body(function: ast.AST) -> Iterator[ast.AST]:
    """What is in it, but for what is in functions in there."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from _body(node)


def _is_start(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="start_soon"):
            return True
        case ast.Attribute(attr="start", value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return "nursery" in name
    return False


def blind(tree: ast.AST) -> Iterator[int]:
    """Lines that catch everything and do not raise it again."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = (
                {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)}
                if node.type
                else {""}
            )
            again = any(isinstance(n, ast.Raise) and n.exc is None for n in ast.walk(node))
            if caught & {"", "Exception", "BaseException", "BaseExceptionGroup"} and not again:
                yield node.lineno


def complaints(source: Path, own: dict[str, dict[str, str]]) -> list[str]:
    found = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        if name in {FIREWALL, "demo_backend.py"}:
            continue
        tree = ast.parse(path.read_text(), str(path))
        found += [
            f"{name}:{line}: {function} goes around the firewall"
            for function, line in starts(tree)
            if function not in own.get(name, {})
        ]
        if name not in BLIND:
            found += [f"{name}:{line}: catches everything" for line in blind(tree)]
    return found


def test_who_shares_a_nursery_is_behind_a_firewall() -> None:
    assert complaints(SOURCE, OWN) == []


def test_every_exception_is_in_use() -> None:
    for name, functions in OWN.items():
        tree = ast.parse((SOURCE / name).read_text())
        assert {function for function, _ in starts(tree)} == functions.keys(), name
    for name in BLIND:
        assert list(blind(ast.parse((SOURCE / name).read_text()))), name


def reasons(tree: ast.AST) -> Iterator[str]:
    """What is given for the end of a session."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="end"),
                args=[ast.Name() | ast.Attribute() | ast.Call(), why],
            ):
                assert isinstance(why, ast.Constant)
                yield str(why.value)


def test_what_may_end_a_session_is_a_short_list() -> None:
    """And it is told: each of these has a line of its own in the documentation."""
    found = {r for path in SOURCE.rglob("*.py") for r in reasons(ast.parse(path.read_text()))}
    assert found == {"DELETE", "idle", "made room", "shutdown", "over"}
    _, _, told = MAP.read_text("utf-8").partition(".. what-ends-a-session\n\n")
    lines = [line for line in told.partition("\n\n")[0].splitlines() if line.startswith("* ")]
    assert len(lines) == len(found)
    assert all(any(reason in line for line in lines) for reason in found)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def f(self):\n    self.inner.start_soon(g)", "a.py:2: f goes around the firewall"),
        (
            "async def f(n):\n    def g():\n        n.start_soon(h)",
            "a.py:3: g goes around the firewall",
        ),
        ("async def f(nursery):\n    await nursery.start(g)", "a.py:2: f goes around the firewall"),
        ("def f(n, ctx):\n    ctx.run(n.start_soon, g)", "a.py:2: f goes around the firewall"),
        ("try:\n    f()\nexcept Exception:\n    pass", "a.py:3: catches everything"),
        ("try:\n    f()\nexcept* (KeyError, Exception):\n    pass", "a.py:3: catches everything"),
        ("try:\n    f()\nexcept:\n    pass", "a.py:3: catches everything"),
    ],
)
def test_what_goes_around_it_is_found(text: str, complaint: str, tmp_path: Path) -> None:
    good = "def f(n):\n    begin(n, g)\n"
    good += "    try:\n        h()\n    except BaseException:\n        raise\n"
    (tmp_path / "good.py").write_text(good)
    (tmp_path / "a.py").write_text(text)
    assert complaints(tmp_path, {}) == [complaint]
