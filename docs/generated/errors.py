"""The codes of errors: which there are, and what each class says of itself."""

from __future__ import annotations

from collections.abc import Iterator

from emceepee_trio import errors
from emceepee_trio.errors import ToolError

from .words import coded, heading, paragraphs, wrapped


def errors_rst() -> str:
    return "\n".join(line for code, kinds in by_code().items() for line in _code(code, kinds))


def by_code() -> dict[str, list[type[ToolError]]]:
    """Those that have a code of their own come first, of each code."""
    found: dict[str, list[type[ToolError]]] = {}
    for cls in vars(errors).values():
        if isinstance(cls, type) and issubclass(cls, ToolError) and cls is not ToolError:
            found.setdefault(cls.code, []).append(cls)
    return found


def _code(code: str, kinds: list[type[ToolError]]) -> Iterator[str]:
    yield from heading(f"``{code}``", "-", code)
    for cls in kinds:
        for each in paragraphs(cls.__doc__ or ""):
            yield from (wrapped(coded(each)), "")
