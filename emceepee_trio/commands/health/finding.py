"""One thing that was looked at."""

from __future__ import annotations

from typing import Literal

import attrs

State = Literal["ok", "note", "warning", "broken"]


@attrs.frozen
class Finding:
    about: str
    state: State
    message: str
    remedy: str = ""
    """What to do; where something is wrong, there always is something."""
