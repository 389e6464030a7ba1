from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from outside import INSPECTOR, SDK_1, SDK_2, Npm, install

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def npm() -> Iterator[Npm]:
    """The clients, and beside them our scripts that use them: packages are found from there."""
    with TemporaryDirectory(prefix="npm-") as folder:
        npm = install(Path(folder), SDK_1, SDK_2, INSPECTOR)
        for script in HERE.glob("*.mjs"):
            shutil.copy(script, folder)
        yield npm
