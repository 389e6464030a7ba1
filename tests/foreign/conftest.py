from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fake_backends import demo, raw
from outside import (
    CLAUDE_CODE,
    CODEX,
    FASTMCP,
    GEMINI,
    INSPECTOR,
    MCPORTER,
    SDK_1,
    SDK_2,
    SERVERS,
    TIME,
    Npm,
    install,
    install_python,
    shared,
)
from served import Daemon, serve

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever waits for a minute and a half begins first; the other workers do the rest."""
    items.sort(key=lambda item: item.path.name != "test_patience.py")


def install_npm(folder: Path) -> Npm:
    """Clients and servers; beside them our scripts that use them: packages are found from there."""
    npm = install(folder, SDK_1, SDK_2, INSPECTOR, MCPORTER, *SERVERS)
    for script in HERE.glob("*.mjs"):
        shutil.copy(script, folder)
    return npm


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Npm]:
    with shared(tmp_path_factory, "npm", install_npm) as npm:
        yield npm


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Npm]:
    """Those that talk to a model."""

    def fill(folder: Path) -> Npm:
        return install(folder, CLAUDE_CODE, CODEX, GEMINI)

    with shared(tmp_path_factory, "npm-models", fill) as npm:
        yield npm


@pytest.fixture(scope="session")
def fastmcp() -> Iterator[Future[str]]:
    """A Python that has fastmcp, once that is installed: meanwhile npm may install, too."""
    with TemporaryDirectory(prefix="fastmcp-") as folder, ThreadPoolExecutor() as threads:
        yield threads.submit(install_python, Path(folder), FASTMCP)


@pytest.fixture(scope="session")
def time_server() -> Iterator[Future[str]]:
    """A Python that has that server, likewise."""
    with TemporaryDirectory(prefix="time-") as folder, ThreadPoolExecutor() as threads:
        yield threads.submit(install_python, Path(folder), TIME)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("served")
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": {"demo": demo(), "raw": raw()}}), "utf-8")
    with serve(folder, "--no-auth", "--config", str(config)) as daemon:
        yield daemon
