"""The face of each view, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from ...tools import VIEWS
from .face import Face
from .native.face import NativeFace
from .ours import OurFace

FACES: Mapping[str, Face] = {
    **{name: OurFace(toolbox) for name, toolbox in VIEWS.items()},
    "native": NativeFace(),
}
"""The first is that of a URL that names none."""
