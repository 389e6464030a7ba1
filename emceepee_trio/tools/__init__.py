"""The tools that clients see: the same ones in the same order for everyone with the same view.

Each module ends in a tuple of its tools; `views` says which of them are shown together, and with
which `instructions`, that a client reads before it sees any. What tools are made of is in `common`.

`servers` · `finding` what they have, and `search` by words · `execution` of their tools, and
`tasks` of calls that take long · `resources`, `prompts` · `questions` that they ask · `news`
without a call · `results` that are too long · `code`: scripts.
"""

from __future__ import annotations

from .views import BESIDE, TOOLBOX, VIEWS

__all__ = ["BESIDE", "TOOLBOX", "VIEWS"]
