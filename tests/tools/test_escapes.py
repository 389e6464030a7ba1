"""Scripts that try to get out, to take everything, or to stay: none of it reaches anybody else."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from emceepee_client import Emceepee, Open
from fake_backends import Journal, raw, until

pytestmark = pytest.mark.once

SECRET = "c9f1b2-nobody-is-to-read-this"

INSIDE = (
    "().__class__.__base__.__subclasses__()",
    "[].append.__self__.__class__.__mro__",
    "(lambda: 0).__globals__",
    "(lambda: 0).__code__.co_consts",
    "call_tool.__globals__",
    "log.__self__",
    "servers.__class__.__init__.__globals__",
    "servers.raw.__dict__",
    "servers._Servers__names",
    "'{0.__class__.__init__.__globals__}'.format(servers)",
    "f'{servers.__class__.__mro__}'",
    "str.format('{0.__globals__}', log)",
    "__builtins__",
    "__import__('os').system('id')",
    "globals()['__builtins__']",
    "vars(servers)",
    "eval('__import__(\"os\")')",
    "exec('import subprocess')",
    "compile('1', 'x', 'exec')",
    "getattr(servers, '__reduce__')",
    "type(servers)('x')",
    "import ctypes",
    "import subprocess",
    "import socket",
    "import pickle",
    "import importlib",
    "import pydantic_monty",
    "import emceepee_trio",
    "import sys\nsys._getframe()",
    "import sys\nsys.modules",
    "import os\nos.environ",
    "import os\nos.getenv('SECRET')",
    "import os\nos.fork()",
    "import os\nos.kill(os.getppid(), 9)",
    "import os\nos.listdir('/')",
    "import asyncio\nawait asyncio.create_subprocess_exec('id')",
    "open({secret}).read()",
    "import pathlib\npathlib.Path({secret}).read_text()",
    "open({new}, 'w').write('x')",
    "open('/proc/self/environ').read()",
    "open('/dev/stdout', 'w').write('x')",
    "try:\n    1 / 0\nexcept Exception as e:\n    x = e.__traceback__.tb_frame\nx",
    "raise SystemExit(3)",
    "exit()",
    "input()",
    "breakpoint()",
    "await call_tool('raw', 'echo', {'__class__': servers})",
    "await servers.raw.__call__()",
    "await servers.__init__.raw()",
)

GREEDY = (
    "x = []\nwhile True:\n    x.append('x' * 1000)",
    "x = 'a' * 10**12",
    "x = 2 ** 10**9",
    "x = {n: [n] * 1000 for n in range(10**9)}",
    "def f(n):\n    return f(n + 1)\nf(0)",
    "x = []\nfor n in range(10**6):\n    x = [x]\nx",
    "x = []\nfor n in range(5000):\n    x = [x]\nx",
    "(" * 50_000,
    "-" * 100_000 + "1",
    "[" * 5_000 + "]" * 5_000,
    "1" + "+1" * 50_000 + "+",
    "while True: pass",
    "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
    "await servers.raw.echo()\nwhile True: pass",
    "while True: print('x' * 10_000)",
    "while True: log('x' * 10_000)",
    "while True: await sleep(0)",
    "await asyncio.gather(*[sleep(100) for _ in range(5000)])",
    "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "sum(range(10**12))",
    "x = list(range(10**10))",
    "sorted(range(10**9))",
    "10**5000",
)


async def tried(emceepee: Emceepee, code: str) -> str:
    """All that comes of it."""
    answer = await emceepee.call("codemode_execute", code=code, timeout_ms=40_000)
    return json.dumps(answer.result)


async def test_none_reaches_the_host(
    connect: Open, journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, new = tmp_path / "secret", tmp_path / "new"
    secret.write_text(SECRET)
    monkeypatch.setenv("SECRET", SECRET)
    async with connect({"raw": raw(*journal.flags)}) as emceepee:
        # One program for many: what raises costs the others nothing, and is told.
        attempts = [
            code.replace("{secret}", repr(str(secret))).replace("{new}", repr(str(new)))
            for code in INSIDE
        ]

        async def four(codes: list[str]) -> None:
            for code in codes:
                said = await tried(emceepee, code)
                assert SECRET not in said, code
                assert "root:" not in said, code
                assert "uid=" not in said, code
                for private in ("site-packages", "/lib/python", str(Path.cwd())):
                    assert private not in said.replace(json.dumps(code)[1:-1], ""), (code, said)

        async with trio.open_nursery() as nursery:
            for n in range(4):
                nursery.start_soon(four, attempts[n::4])
        assert not new.exists()
        called = [entry["params"]["name"] for entry in journal.of("tools/call")]
        assert set(called) <= {"__call__", "echo"}
        assert (await emceepee.execute("raw", "echo", {"text": "there"})).text == "there"


async def test_none_takes_everything(connect: Open) -> None:
    small = {"codemode": {"cpu_ms": 300, "memory": 16 * 2**20}}
    async with connect({"raw": raw()}, **small) as emceepee:
        await emceepee.connected("raw")
        waits = list(GREEDY)

        async def next_ones() -> None:
            while waits:
                code = waits.pop()
                said = await tried(emceepee, code)
                assert '"isError": true' in said or len(said) < 40_000, code[:80]
                # Nobody notices, while the others are at it.
                assert (await emceepee.execute("raw", "echo", {"text": "x"})).text == "x"

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(next_ones)


def children_of(pid: int) -> dict[int, str]:
    """All that descend from it, and what they run."""
    found: dict[int, str] = {}
    wanted = [pid]
    for parent in wanted:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            for child in map(int, said_by(task).split()):
                wanted.append(child)
                found[child] = said_by(Path(f"/proc/{child}/cmdline")).replace("\0", " ")
    return found


def said_by(path: Path) -> str:
    """Nothing, if what it is about has ended meanwhile."""
    with suppress(OSError):
        return path.read_text()
    return ""


@pytest.mark.cold
async def test_a_script_ends_with_its_program_and_its_program_with_it(connect: Open) -> None:
    def sandboxes() -> dict[int, str]:
        found = children_of(os.getpid())
        return {pid: said for pid, said in found.items() if "monty" in said or "codemode" in said}

    async with connect() as emceepee:
        assert sandboxes() == {}  # nothing of it before the first script

        async def started() -> str:
            waiting = {"code": "log('here')\nawait sleep(600)", "timeout_ms": 0}
            task_id = (await emceepee.call("codemode_execute", **waiting)).task_id
            while True:
                task = (await emceepee.says("get_task", task_id=task_id))["task"]
                if "here" in (task.get("status_message", "")):
                    return task_id
                await trio.sleep(0.01)

        for victim in "codemode", "monty subprocess":
            task_id = await started()
            (pid,) = [pid for pid, said in sandboxes().items() if victim in said]
            os.kill(pid, signal.SIGKILL)
            task = await emceepee.task_over(task_id)
            assert task["status"] == "failed"
            assert "the sandbox has ended" in task["error"]
            await until(lambda: not sandboxes())
        await emceepee.says("cancel_task", task_id=await started())
        await until(lambda: not sandboxes())
        await started()
        assert len(sandboxes()) == 2
        # Each gives way to who waits for a call, from its first step on.
        ours = os.getpriority(os.PRIO_PROCESS, 0)
        assert all(os.getpriority(os.PRIO_PROCESS, pid) > ours for pid in sandboxes())
    await until(lambda: not sandboxes())


async def test_nothing_crosses_from_one_script_to_another(connect: Open) -> None:
    async with connect() as emceepee:
        leaves = "import re, json\nleft = 1\njson.left = 2\nglobals_ = 3"
        await emceepee.call("codemode_execute", code=leaves)
        for code in "left", "globals_", "import json\njson.left":
            error = await emceepee.fails("codemode_execute", code=code)
            assert "Error" in error["message"]
