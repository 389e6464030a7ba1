"""One value of a message, as deep, as long, as large or as many as you like.

What a bound is about is not known here, so it is looked for: a value grows until what comes of it
changes, and then everything just below and just above that is tried. There are the seams: what one
part takes and the next does not. Who fuzzes says what is done with each, and what has come of it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
from hypothesis import strategies as st

from mistakes import Members, Path, Verbatim, at, changed, nested, places, spelled

Shape: TypeAlias = Callable[[Any, int], Any]

MOST = 1 << 20
"""Bytes that a message may grow to, a little more than is allowed: where this is used."""
FACTOR = 8
AROUND = 6
"""How many on either side of a seam."""
FINE = 6000
"""Above this no seam is looked for exactly: levels and digits end before, and bytes are counted."""


def _joined(one: str, n: int) -> Verbatim:
    return Verbatim("[" + ",".join([one] * n) + "]")


def _members(value: Any, n: int) -> Any:
    """As many members as that, like the one that there is."""
    like = spelled(next(iter(value.values()), 1))
    own = [f"{json.dumps(key)}:{spelled(inner)}" for key, inner in value.items()]
    return Verbatim("{" + ",".join([*own, *(f'"m{k}":{like}' for k in range(n))]) + "}")


DEEP: Mapping[str, Shape] = {
    "lists in lists": lambda _, n: nested(n),
    "objects in objects": lambda _, n: nested(n, '{"a":', "}"),
    "lists in objects": lambda _, n: nested(n // 2 + 1, '{"a":[', "]}"),
}
LARGE: Mapping[str, Shape] = {
    "digits": lambda _, n: Verbatim("9" * n),
    "zeros": lambda _, n: Verbatim("1" + "0" * n),
    "an exponent": lambda _, n: Verbatim(f"1e{n}"),
}
LONG: Mapping[str, Shape] = {
    "one word": lambda _, n: "x" * n,
    "one number": lambda _, n: "0" * n,
    "words": lambda _, n: "x " * (n // 2),
    "lines": lambda _, n: "x\n" * (n // 2),
    "signs": lambda _, n: "=" * n,
    "slashes": lambda _, n: "/" * n,
}
MANY: Mapping[str, Shape] = {
    "objects": lambda _, n: _joined("{}", n),
    "lists": lambda _, n: _joined("[]", n),
    "numbers": lambda _, n: _joined("0", n),
    "words": lambda _, n: Verbatim("[" + ",".join(f'"w{k}"' for k in range(n)) + "]"),
    "different objects": lambda _, n: Verbatim(
        "[" + ",".join(f'{{"a":{k}}}' for k in range(n)) + "]"
    ),
}
REPEATED: Mapping[str, Shape] = {
    "again": lambda value, n: _joined(spelled(value[0]), n) if value else _joined("{}", n),
}
WIDE: Mapping[str, Shape] = {
    "members": _members,
    "the same member": lambda value, n: Members((*value.items(), ("m", 1)) * n),
}


@attrs.frozen
class Growth:
    """Of the value at *place* in *message*."""

    message: Any
    place: Path
    how: str

    def body(self, n: int) -> bytes:
        shape = SHAPES[self.how]
        whole = changed(self.message, self.place, lambda value: shape(value, n))
        return spelled(whole).encode()


SHAPES: Mapping[str, Shape] = {**DEEP, **LARGE, **{f"{k}, long": v for k, v in LONG.items()}}
SHAPES = {**SHAPES, **{f"many {k}": v for k, v in MANY.items()}, **REPEATED, **WIDE}


def _fits(how: str, value: Any) -> bool:
    if how in LARGE:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if how.endswith(", long"):
        return isinstance(value, str)
    if how in REPEATED:
        return isinstance(value, list)
    if how in WIDE:
        return isinstance(value, dict)
    return True


KINDS: list[list[str]] = [list(DEEP), list(DEEP), list(LARGE), list(LARGE), list(LARGE)]
KINDS += [[k for k in SHAPES if k.endswith(", long")], [k for k in SHAPES if k.startswith("many ")]]
KINDS += [list(REPEATED), list(WIDE)]

Place: TypeAlias = tuple[str, Any, Path]
"""What the message is for, the message, and where in it."""


def _name(path: Path) -> str:
    """Of the member that a value is, or is in."""
    return next((key for key in reversed(path) if isinstance(key, str)), "")


def growths(
    messages: Sequence[tuple[str, Any]],
    below: int = 0,
    kinds: Sequence[Iterable[str]] = KINDS,
) -> st.SearchStrategy[Any]:
    """What one of *messages* is for, and how it grows, not nearer to its root than *below*.

    How first, then the name of what grows, and then where that is: of some kinds of value there
    are few among many others, and some names are in every message.
    """
    named: dict[str, dict[str, list[Place]]] = {how: {} for how in SHAPES}
    for label, message in messages:
        for path in places(message):
            for how in SHAPES:
                if len(path) >= below and _fits(how, at(message, path)):
                    named[how].setdefault(_name(path), []).append((label, message, path))

    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[str, Growth]:
        how = draw(st.sampled_from(list(draw(st.sampled_from(kinds)))))
        names = list(named[how])
        # The whole message is one place among many, and not like the others.
        whole = names[:1] * (len(names) // 4) if names[0] == "" else []
        name = draw(st.sampled_from([*whole, *names]))
        label, message, path = draw(st.sampled_from(named[how][name]))
        return label, Growth(message, path, how)

    return drawn()


async def grow(growth: Growth, trial: Callable[[bytes], Awaitable[Hashable]]) -> None:
    """Try all sizes, and then those around each seam; *trial* says what has come of one."""

    async def what(n: int) -> Hashable:
        return await trial(growth.body(n))

    found: list[tuple[int, Hashable]] = []
    n = 1
    while len(growth.body(n)) <= MOST and n <= MOST:
        found.append((n, await what(n)))
        n *= FACTOR
    for (low, before), (high, after) in itertools.pairwise(found):
        if before == after or low > FINE:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            if await what(middle) == before:
                low = middle
            else:
                high = middle
        for size in range(max(1, low - AROUND), high + AROUND):
            await what(size)
