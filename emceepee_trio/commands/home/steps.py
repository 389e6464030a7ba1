"""What becomes of each file of a client: shown to a person first, and then done one by one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import attrs

from ..common.output import complain, say
from ..common.terminal import show_table
from .asking import shown
from .documents import Document, Unusable
from .places import ClientFile


@attrs.frozen
class FileStep:
    """What becomes of one."""

    place: ClientFile
    does: str
    note: str = ""
    document: Document | None = None
    """What is changed; None if nothing is."""
    is_bad: bool = False


S = TypeVar("S", bound=FileStep)


def show(steps: Iterable[FileStep]) -> None:
    show_table(
        ("client", "file", "what", "note"),
        [(each.place.client, shown(each.place.path), each.does, each.note) for each in steps],
    )


def carried_out(
    options: argparse.Namespace, steps: Sequence[S], do: Callable[[S], None], done: str
) -> bool:
    """Whether each could be; what is *done* is said of its client."""
    failed = False
    for step in steps:
        try:
            do(step)
        except Unusable as error:
            complain(f"emceepee {options.command}: {step.place.client}: {error}")
            failed = True
        else:
            say(f"{step.place.client}: {done}")
    return not failed
