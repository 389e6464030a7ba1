"""A program that takes its time before it is the raw server, as ``npx`` and ``uvx`` do.

``installing("print", 3, *flags)`` is its entry: for three seconds it prints to stderr; or it writes
to a file, has a child that computes, computes, or sleeps. With ``log=`` it appends a line
to that file when it begins and when it is done. Imports nothing but the standard library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RAW = Path(__file__).with_name("raw_server.py")
NO_LOG = "-"
ENDS = "--ends"
"""In place of flags: it becomes nothing else."""


def installing(
    how: str, seconds: float, *flags: str | os.PathLike[str], log: Path | None = None, **entry: Any
) -> dict[str, Any]:
    args = [__file__, how, str(seconds), str(log or NO_LOG), *map(str, flags)]
    return {"command": sys.executable, "args": args, **entry}


def install(how: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile(buffering=0) as file:
        while (left := end - time.monotonic()) > 0:
            match how:
                case "print":
                    sys.stderr.write("Downloading the internet (1.0 TiB)\n")
                    sys.stderr.flush()
                    time.sleep(min(left, 0.2))
                case "write":
                    file.write(b"x")
                    time.sleep(min(left, 0.2))
                case "child":
                    command = [sys.executable, __file__, "burn", str(left), NO_LOG, ENDS]
                    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
                case "burn":
                    sum(range(10_000))
                case _:
                    time.sleep(left)


def main(how: str, seconds: str, log: str, *flags: str) -> None:
    def note(what: str) -> None:
        if log != NO_LOG:
            with Path(log).open("a") as file:
                file.write(f"{what}\n")

    note("begin")
    install(how, float(seconds))
    note("end")
    if flags != (ENDS,):
        os.execv(sys.executable, [sys.executable, str(RAW), *flags])


if __name__ == "__main__":
    main(*sys.argv[1:])
