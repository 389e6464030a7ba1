"""The suite is installed once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from outside import CONFORMANCE, Npm, install


@pytest.fixture(scope="session")
def npm() -> Iterator[Npm]:
    with TemporaryDirectory(prefix="npm-") as folder:
        yield install(Path(folder), CONFORMANCE)
