"""What a peer said, as Python writes it, but short: in depth, in length, in the time it takes."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from itertools import islice
from typing import Any


class _Brief(reprlib.Repr):
    def repr_dict(self, x: Mapping[Any, Any], level: int) -> str:
        # The library's own sorts all keys before it takes a few.
        few = dict(islice(x.items(), self.maxdict))
        text = super().repr_dict(few, level)
        return text if len(few) == len(x) or level <= 0 else f"{text[:-1]}, {self.fillvalue}}}"


def brief(value: object, characters: int = 30) -> str:
    """*value*; of a string in it, about as many *characters*."""
    maker = _Brief()
    maker.maxstring, maker.fillvalue = characters, "..."
    return maker.repr(value)
