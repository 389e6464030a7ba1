"""What a field takes, beside its type: marks in its annotation, which a checker of types sees past.

::

    @frozen
    class Limits:
        sessions: Annotated[int, Bounds(1, 100_000), Doc("Sessions at once.")] = 1000

To mypy that is an ``int`` with a default; without one it is an argument that must be given.
:func:`frozen` moves the marks into the metadata of the attrs field, where each is found by the
names of its own fields, and the annotation becomes the bare type. What becomes of them is for
``strict``, ``schema`` and whoever else reads them.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import attrs

__all__ = ["Bounds", "Doc", "MaxLength", "Most", "Pattern", "Secret", "fields_of", "frozen"]


@attrs.frozen
class Bounds:
    """Of a number, or of each number in it; both are inclusive."""

    low: float | None = None
    high: float | None = None


@attrs.frozen
class MaxLength:
    """In characters, or in items."""

    max_length: int


@attrs.frozen
class Most:
    """So much that nobody means it: items of a list or object, characters of each string.

    Looked at before anything else is, and not worth a word in a schema.
    """

    most_items: int | None = None
    most_characters: int | None = None


@attrs.frozen
class Pattern:
    """What the whole of a string matches, or of each string in it, and how a problem calls it."""

    pattern: str
    expected: str | None = None


@attrs.frozen
class Secret:
    """Its values are never shown, in problems or in reprs."""

    secret: bool = attrs.field(default=True, init=False)


@attrs.frozen
class Doc:
    """What a reader is told."""

    doc: str


def fields_of(cls: type[attrs.AttrsInstance]) -> tuple[attrs.Attribute[Any], ...]:
    """The fields of *cls*, each with the type that it takes.

    Raises:
        TypeError: nobody has read its annotations, since :func:`frozen` did not make it.
    """
    found: tuple[attrs.Attribute[Any], ...] = attrs.fields(cls)
    if any(isinstance(a.type, str) or get_origin(a.type) is Annotated for a in found):
        raise TypeError(f"{cls.__qualname__} is not made by {__name__}.frozen")
    return found


def _with_marks(cls: type, found: list[attrs.Attribute[Any]]) -> list[attrs.Attribute[Any]]:
    hints = get_type_hints(cls, include_extras=True)
    return [_with_its_marks(a, hints[a.name]) for a in found]


def _with_its_marks(a: attrs.Attribute[Any], hint: Any) -> attrs.Attribute[Any]:
    bare, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if _has_marks(bare):
        raise TypeError(f"{a.name}: marks are read around the whole annotation, not inside of it")
    said = {k: v for mark in marks for k, v in attrs.asdict(mark).items() if v is not None}
    shown = a.repr and not said.get("secret")
    return a.evolve(type=bare, repr=shown, metadata={**a.metadata, **said})


def _has_marks(hint: Any) -> bool:
    return get_origin(hint) is Annotated or any(map(_has_marks, get_args(hint)))


if TYPE_CHECKING:
    # Under its own name, since mypy knows the decorators of attrs by theirs.
    from attrs import frozen
else:
    frozen = functools.partial(attrs.frozen, field_transformer=_with_marks)
