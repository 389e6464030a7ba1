"""The face of each view, by its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...config import Config, ConfigError
from ...model.json.problems import Problem
from ...tools import VIEWS
from .face import Face
from .native.face import NativeFace
from .ours import OurFace

FACES: Mapping[str, Face] = {
    **{name: OurFace(name, toolbox) for name, toolbox in VIEWS.items()},
    "native": NativeFace(),
}
"""The first is that of a URL that names none, of a holder of a token who has none of his own."""


def check_views(config: Config, file: Path | None = None) -> Config:
    """The same; raises `ConfigError`, of that *file*, if it has a view that there is not."""
    if problems := [
        Problem(f"http.tokens.{name}.view", f"no view {view!r}; there are {', '.join(FACES)}")
        for name in config.http.tokens
        if (view := config.http.view_of(name)) is not None and view not in FACES
    ]:
        raise ConfigError(problems, file)
    return config
