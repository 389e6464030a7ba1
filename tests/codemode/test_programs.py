"""Random programs: what the sandbox makes of them is what CPython makes of them, calls too."""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pydantic_monty as monty
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emceepee_trio.codemode.outside import Outside
from emceepee_trio.codemode.worker import Sandboxed, binary

NAMES = ("a", "b", "c")
NEGATIVE = "no negative numbers here"


class Echo(Outside):
    """Answers each call with its number, in any order; negative ones are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def ask(self, number: int, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        assert (name, args[:2], kwargs) == ("call_tool", ("s", "t"), {})
        self.asked.append(args[2])
        n = args[2]["n"]
        refused = isinstance(n, int) and n < 0
        said = {"exc_type": "RuntimeError", "message": NEGATIVE} if refused else {"return_value": n}
        self.answered(number, said)


@pytest.fixture(scope="module")
def pool() -> Iterator[monty.Monty]:
    with monty.Monty(binary_path=binary(), min_processes=1, max_processes=1) as pool:
        yield pool


def sandboxed(pool: monty.Monty, code: str) -> tuple[Any, list[Any]]:
    outside = Echo()
    told = {"code": code, "shown": 2**20, "memory": 2**26, "seconds": 5}
    last = Sandboxed(pool, outside, told).run()
    assert outside.sandbox is not None
    os.close(outside.sandbox)
    if "error" in last:
        return last["error"]["message"].partition(":")[0].partition("\n")[0], outside.asked
    return [last["result"]["value"]], outside.asked


class Refused(RuntimeError):
    """What the model calls a ToolError."""


def modelled(code: str) -> tuple[Any, list[Any]]:
    asked: list[Any] = []

    async def echo(n: Any) -> Any:
        if isinstance(n, int) and n < 0:
            raise Refused(NEGATIVE)
        return n

    def call_tool(server: str, tool: str, args: Mapping[str, Any]) -> Any:
        asked.append(args)
        return echo(args["n"])

    async def gather(*calls: Any) -> list[Any]:
        try:
            return [await call for call in calls]
        finally:
            for call in calls:
                call.close()

    tools = SimpleNamespace(t=lambda **args: call_tool("s", "t", args))
    names = {
        "call_tool": call_tool,
        "ToolError": RuntimeError,
        "servers": SimpleNamespace(s=tools),
        "asyncio": SimpleNamespace(gather=gather),
    }
    *lines, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    kept = ast.Assign([ast.Name("kept", ast.Store())], last.value)
    tree = ast.fix_missing_locations(ast.Module([*lines, kept], []))
    with warnings.catch_warnings(action="ignore"):
        program = compile(tree, "script", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    try:
        run = eval(program, names)
        if run is not None:
            try:
                run.send(None)
            except StopIteration:
                pass
    except Refused:
        return "ToolError", asked
    except Exception as error:  # noqa: BLE001 - whatever a program raises
        return type(error).__name__, asked
    return [names["kept"]], asked


numbers = st.integers(-3, 9).map(str)
values: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        numbers,
        st.sampled_from(NAMES),
        st.sampled_from(("'x'", "''", "'long text'", "None", "True", "1.5")),
        st.lists(numbers, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.builds("({} {} {})".format, values, st.sampled_from(("+", "*", "-", "//", "%")), values),
        st.builds("({} if {} else {})".format, values, values, values),
        st.builds("[v * 2 for v in {} if v]".format, values),
        st.builds("{{'k': {}, 'n': {}}}".format, values, values),
        st.builds("{}['n']".format, values),
        st.builds("{}[{}]".format, values, numbers),
        st.builds("str({})".format, values),
        st.builds("len({})".format, values),
        st.builds("({} == {})".format, values, values),
        calls,
    )
)
calls: st.SearchStrategy[str] = st.one_of(
    st.builds("(await call_tool('s', 't', {{'n': {}}}))".format, numbers),
    st.builds("(await servers.s.t(n={}))".format, numbers),
    st.builds(
        "(await asyncio.gather(servers.s.t(n={}), call_tool('s', 't', {{'n': {}}})))".format,
        numbers,
        numbers,
    ),
)
simple = st.builds("{} = {}".format, st.sampled_from(NAMES), values)


def indented(lines: list[str]) -> str:
    return "\n".join("    " + line for each in lines for line in each.split("\n"))


blocks = st.lists(simple, min_size=1, max_size=2).map(indented)
statements = st.one_of(
    simple,
    st.builds("for a in range({}):\n{}".format, st.integers(0, 3), blocks),
    st.builds("if {}:\n{}\nelse:\n{}".format, values, blocks, blocks),
    st.builds("try:\n{}\nexcept ToolError:\n{}".format, blocks, blocks),
    st.builds("try:\n{}\nexcept (TypeError, KeyError):\n    b = 'no'".format, blocks),
    st.builds("def f(n):\n    return n\nc = f({})".format, values),
)
programs = st.builds(
    lambda lines, last: "\n".join(["a, b, c = 1, 'two', [3]", *lines, f"[a, b, c, {last}]"]),
    st.lists(statements, max_size=5),
    values,
)


@given(code=programs)
@settings(max_examples=100, deadline=None)
def test_a_program_is_what_it_is_in_cpython(pool: monty.Monty, code: str) -> None:
    assert sandboxed(pool, code) == modelled(code), code
