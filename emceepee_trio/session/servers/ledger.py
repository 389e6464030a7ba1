"""What a client has been told of each server, in bytes: what its model had to read.

Definitions are what lists and searches say of tools, resources and prompts; results are what the
server answered to calls, as far as it was shown. Knows neither.
"""

from __future__ import annotations

import attrs

from ...config.bounds import MAX_LEDGER

OTHERS = ""
"""No server is called that: those for which there was no line any more."""


@attrs.define
class Tally:
    """Of one server."""

    definitions: int = 0
    results: int = 0

    def to_json(self) -> dict[str, int]:
        return {"definitions_bytes": self.definitions, "results_bytes": self.results}


@attrs.define(eq=False)
class Ledger:
    _lines: dict[str, Tally] = attrs.field(factory=dict, init=False)

    def add(self, server: str, *, definitions: int = 0, results: int = 0) -> None:
        if server not in self._lines and len(self._lines) >= MAX_LEDGER:
            server = OTHERS
        line = self._lines.get(server) or self._lines.setdefault(server, Tally())
        line.definitions += definitions
        line.results += results

    def of(self, server: str) -> Tally:
        return self._lines.get(server) or Tally()

    @property
    def total(self) -> Tally:
        lines = self._lines.values()
        return Tally(sum(each.definitions for each in lines), sum(each.results for each in lines))
