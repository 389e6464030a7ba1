from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fake_backends import demo, raw
from outside import INSPECTOR, SDK_1, SDK_2, Npm, install
from served import Daemon, serve

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def npm() -> Iterator[Npm]:
    """The clients, and beside them our scripts that use them: packages are found from there."""
    with TemporaryDirectory(prefix="npm-") as folder:
        npm = install(Path(folder), SDK_1, SDK_2, INSPECTOR)
        for script in HERE.glob("*.mjs"):
            shutil.copy(script, folder)
        yield npm


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": {"demo": demo(), "raw": raw()}}), "utf-8")
    with serve(folder, "--no-auth", "--config", str(config)) as daemon:
        yield daemon
