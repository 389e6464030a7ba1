"""A server on stdin and stdout that says what it was told to; started as ``player.py SCRIPT``.

SCRIPT is JSON: ``results``, what to answer by method, and ``instead``, lines in hex to write
instead, in which ``"@ID@"`` and ``"@TOKEN@"`` stand for those of the request; under "start", lines
to write before anything else; and ``flood``: a file descriptor, a line in hex, and how many bytes
of such lines to write there before each tool call is answered. Stdlib only, so that it starts
quickly.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def write(line: bytes, to: int = 1) -> None:
    data = line + b"\n"
    while data:
        data = data[os.write(to, data) :]


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes its time
        script: dict[str, Any] = json.load(file)
    instead = {key: list(map(bytes.fromhex, lines)) for key, lines in script["instead"].items()}
    for line in instead.get("start", ()):
        write(line)
    for received in sys.stdin.buffer:
        message = json.loads(received)
        method, params = message.get("method"), message.get("params") or {}
        if method is None or "id" not in message:
            continue
        answer = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "tools/call" and "flood" in script:
            to, line, size = script["flood"]
            lines = bytes.fromhex(line) + b"\n"
            write((lines * (size // len(lines) + 1))[:-1], to)
        if method in instead:
            token = json.dumps(params.get("_meta", {}).get("progressToken")).encode()
            for line in instead[method]:
                said = line.replace(b'"@ID@"', json.dumps(message["id"]).encode())
                write(said.replace(b'"@TOKEN@"', token))
        elif method in script["results"]:
            write(json.dumps(answer | {"result": script["results"][method]}).encode())
        else:
            error = {"code": -32601, "message": "Method not found"}
            write(json.dumps(answer | {"error": error}).encode())


if __name__ == "__main__":
    main()
