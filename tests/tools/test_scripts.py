"""What a model may rely on in a script, and what it is told where it may not.

What the tests of the original's scripts are about, each in Python.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from emceepee_client import Emceepee, open_emceepee
from fake_backends import raw

pytestmark = pytest.mark.once

FUNCTIONS = (
    *("list_servers", "search", "list_tools", "call_tool", "list_resources"),
    *("list_resource_templates", "read_resource", "list_prompts", "get_prompt", "read_result"),
    *("sleep", "log"),
)

NOT_THERE = {
    "NameError": (
        *("globals()", "vars()", "__import__('os')", "compile('1', 'x', 'exec')", "input()"),
        *("breakpoint()", "exit()", "__builtins__", "eval('__import__')", "process", "require"),
    ),
    "ModuleNotFoundError": (
        *("import subprocess", "import socket", "import threading", "import multiprocessing"),
        *("import signal", "import urllib.request", "import http.client", "import ctypes"),
        *("import importlib", "import builtins", "import shutil", "import tempfile"),
    ),
    "AttributeError": ("import sys\nsys.modules", "import os\nos.system('id')"),
    "PermissionError": (
        *("open('/etc/passwd')", "import os\nos.listdir('/')"),
        "import pathlib\npathlib.Path('/etc/passwd').exists()",
    ),
    "RuntimeError": ("import os\nos.environ",),
}

VALUES = {
    "42": 42,
    "'hello'": "hello",
    "True": True,
    "1.5": 1.5,
    "None": None,
    "[1, 2, 3]": [1, 2, 3],
    "(1, 'two')": [1, "two"],
    "{'a': 1, 'b': 'two'}": {"a": 1, "b": "two"},
    "{'nested': {'deep': {'value': 42}}}": {"nested": {"deep": {"value": 42}}},
    "json.loads(json.dumps({'a': 1}))": {"a": 1},
}
LAST = {
    "x = 1": None,
    "return 'early'\n3": "early",
    "import math\nmax(1, 2, 3) + math.floor(2.5)": 5,
}

LOGGED = {
    "print('hello')": ["hello"],
    "log('hello')": ["hello"],
    "import sys\nprint('warning', file=sys.stderr)": ["warning"],
    "print('a', 1, True)": ["a 1 True"],
    "log('second', 123)": ["second 123"],
    "print({'key': 'value'})": ["{'key': 'value'}"],
    "log({'nested': True})": ['{"nested": true}'],
    "log('first')\nprint('then')\nlog('last')": ["first", "then", "last"],
}

WRONG = {
    "x = {": "SyntaxError: ",
    "raise ValueError('test error')": "ValueError: test error\n  line 1",
    "undefined_variable": "NameError: name 'undefined_variable' is not defined",
    "None.foo()": "AttributeError: 'NoneType' object has no attribute 'foo'",
    "1 + 'a'": "TypeError: ",
    "await call_tool('raw', 'rpc_error')": "ToolError: TOOL_ERR_EXECUTION_FAILED: ",
    "await list_prompts('nobody')": "ToolError: TOOL_ERR_SERVER_NOT_FOUND: ",
}

ARGUMENTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({}, "code"),
    ({"code": ""}, "code: it is empty"),
    ({"code": " \n\t"}, "code: it is empty"),
    ({"code": "x" * (256 * 1024 + 1)}, "262144"),
    ({"code": "1", "timeout_ms": -1}, "timeout_ms"),
    ({"code": "1", "timeout_ms": 10**9}, "timeout_ms"),
    ({"code": "1", "timeout_ms": "soon"}, "timeout_ms"),
    ({"code": "", "timeout_ms": -1}, "timeout_ms"),
    ({"code": "1", "timeout_ms": 0, "on_timeout": "end"}, "timeout_ms"),
)


@pytest.fixture
async def emceepee(tmp_path: Path) -> AsyncGenerator[Emceepee]:
    gone = {"command": "/no/such/program"}
    async with open_emceepee(tmp_path, {"raw": raw(), "gone": gone}, codemode={"calls": 5}) as it:
        await it.connected("raw")
        yield it


async def run(emceepee: Emceepee, code: str, **options: Any) -> dict[str, Any]:
    answer = await emceepee.call("codemode_execute", code=code, **options)
    assert answer.result["isError"] is False, answer.texts
    said: dict[str, Any] = answer.result["structuredContent"]
    return said


def caught(code: str) -> str:
    """A line of a program that says what kind of error that is."""
    inside = code.replace("\n", "\n    ")
    return f"try:\n    {inside}\nexcept Exception as e:\n    seen.append(type(e).__name__)\n"


async def test_what_is_there_and_what_is_not(emceepee: Emceepee) -> None:
    there = await run(emceepee, f"[type(f).__name__ for f in [{', '.join(FUNCTIONS)}]]")
    assert there["result"] == ["function"] * len(FUNCTIONS)
    for kind, codes in NOT_THERE.items():
        said = await run(emceepee, f"seen = []\n{''.join(map(caught, codes))}seen")
        assert said["result"] == [kind] * len(codes), codes


async def test_values_come_back_as_json_has_them(emceepee: Emceepee) -> None:
    said = await run(emceepee, f"[{', '.join(VALUES)}]")
    assert said["result"] == [*VALUES.values()]
    for code, value in LAST.items():
        said = await run(emceepee, code)
        assert (said["result"], said["logs"], said["calls"]) == (value, [], 0), code


async def test_what_is_logged_and_printed_is_told_in_its_order(emceepee: Emceepee) -> None:
    said = await run(emceepee, "\n".join([*LOGGED, "'done'"]))
    assert said["result"] == "done"
    assert said["logs"] == [line for lines in LOGGED.values() for line in lines]


async def test_errors_have_their_kind_and_words(emceepee: Emceepee) -> None:
    for code, wanted in WRONG.items():
        error = await emceepee.fails("codemode_execute", code=f"log('begun')\n{code}")
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        wanted = wanted.replace("line 1", "line 2")
        assert error["message"].startswith(f"the script failed: {wanted}"), error["message"]
        # What was logged until then is told, unless nothing of it could begin.
        assert error["details"]["logs"] == ([] if "Syntax" in wanted else ["begun"])


async def test_arguments_are_looked_at_before_anything_runs(emceepee: Emceepee) -> None:
    for arguments, wanted in ARGUMENTS:
        error = await emceepee.fails("codemode_execute", **arguments)
        assert error["code"] == "TOOL_ERR_INVALID_ARGUMENTS"
        assert wanted in error["message"], error["message"]


async def test_time_is_measured_and_bounded(emceepee: Emceepee) -> None:
    said = await run(emceepee, "await sleep(0.2)\n1 + 1", timeout_ms=60_000)
    assert said["result"] == 2
    assert 200 <= said["duration_ms"] < 60_000
    error = await emceepee.fails(
        "codemode_execute",
        code="while True:\n    await sleep(0.01)",
        timeout_ms=300,
        on_timeout="end",
    )
    assert error["code"] == "TOOL_ERR_TIMEOUT"
    assert "ended after 300 ms" in error["message"]


async def test_calls_are_counted_and_bounded(emceepee: Emceepee) -> None:
    code = "servers_ = await list_servers()\ntools = await list_tools('raw')\nlen(tools['tools'])"
    assert (await run(emceepee, code))["calls"] == 2
    # Waiting and logging are no calls.
    said = await run(emceepee, "for n in range(9):\n    log(n)\n    await sleep(0.001)\n'done'")
    assert (said["result"], said["calls"]) == ("done", 0)
    error = await emceepee.fails(
        "codemode_execute", code="for n in range(9):\n    await list_servers()"
    )
    assert "ToolError: TOOL_ERR_LIMIT: a script may make 5 calls" in error["message"]
    assert error["details"]["calls"] == 5


async def test_a_server_that_is_missing_in_a_list_is_told_in_the_log(emceepee: Emceepee) -> None:
    code = "print('runtime')\nfor n in range(2): found = await list_resources()\nlog(len(found))"
    first, missed, last = (await run(emceepee, code))["logs"]
    assert (first, last) == ("runtime", "2")
    assert missed.startswith("list_resources: without gone, error: command '/no/such/program'")
    said = await run(emceepee, "await list_tools()\n(await search('echo'))['errors'][0]['server']")
    assert said["result"] == "gone"
    assert [line.split(":")[0] for line in said["logs"]] == ["list_tools", "search"]
    assert (await run(emceepee, "len(await list_resources('raw'))"))["logs"] == []
