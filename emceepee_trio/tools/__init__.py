"""The tools that clients see: the same ones in the same order for everyone with the same view.

Each module ends in a tuple of its tools; `views` says which of them are shown together, and with
which `instructions`, that a client reads before it sees any. What tools are made of is in `common`.
"""

from __future__ import annotations

from .views import BESIDE, TOOLBOX, VIEWS

__all__ = ["BESIDE", "TOOLBOX", "VIEWS"]
