"""A part of a JSON text, by a JSON Pointer or a JMESPath: ``selecting.py FILE PATH ROOM``.

A program, because both the text and what an expression makes of it may be so large, and take so
long, that only a process can be ended. It imports the standard library and `jmespath`, nothing of
ours, and prints one object: what there is, as text, up to *room* bytes; or what is wrong.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

MEMORY = 4 * 2**30
"""Bytes of address space."""
CPU = 20
"""Seconds."""


def select(value: Any, path: str) -> Any:
    """Raises `ValueError`, with what is wrong."""
    if not path.startswith("/"):
        import jmespath  # type: ignore[import-untyped]  # noqa: PLC0415 - a pointer needs none of it

        return jmespath.search(path, value)
    done = ""
    for escaped in path[1:].split("/"):
        step = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise ValueError(f"there is no {step!r} at {done or 'the top'}, {what_of(value)}")
        done += f"/{escaped}"
    return value


def what_of(value: Any) -> str:
    if isinstance(value, dict):
        keys = ", ".join(key[:40] for key in list(value)[:12])
        return f"an object with {len(value)} keys: {keys}{', …' if len(value) > 12 else ''}"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if value is None:
        return "null"
    return f"a {'string' if isinstance(value, str) else 'value that is neither array nor object'}"


def told(value: Any, room: int) -> dict[str, Any]:
    """As text, which is cut at an element."""
    if isinstance(value, str):
        return _cut(value, room)
    if isinstance(value, list):
        parts: list[str] = []
        left = room - 2
        for inner in value:
            said = _json(inner)
            if (left := left - _size(said) - 1) < 0:
                break
            parts.append(said)
        if parts or not value:
            more = len(value) - len(parts)
            shown = {"text": f"[{','.join(parts)}]", "shown": len(parts)}
            return shown | ({"more": more} if more else {})
    return _cut(_json(value), room)


def _cut(text: str, room: int) -> dict[str, Any]:
    shown = text[:room]
    while _size(shown) > room:
        shown = shown[: len(shown) * room // _size(shown)]
    missing = len(text) - len(shown)
    return {"text": shown} | ({"omitted": {"characters": missing}} if missing else {})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(text: str) -> int:
    """Of it within a JSON string."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")) - 2


def main(file: str, path: str, room: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU, CPU))
    said: dict[str, Any]
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        try:
            value = json.loads(data.decode("utf-8", "surrogatepass"))
        except ValueError as error:
            said = {"error": f"the result is not JSON ({error}); use grep, lines or bytes"}
        else:
            del data
            found = select(value, path)
            said = {"is": what_of(found)} | told(found, int(room))
            if found is None:
                said["note"] = f"nothing may be there; the whole result is {what_of(value)}"
    except ValueError as error:  # those of jmespath, too
        said = {"error": str(error)[:1000]}
    except MemoryError:
        said = {"error": "the result is too large for that"}
    except RecursionError:
        said = {"error": "the result is nested too deeply for that"}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
