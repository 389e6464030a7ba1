"""What is imported is declared, and what is declared is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import emceepee_trio

pytestmark = pytest.mark.once

PACKAGE = Path(emceepee_trio.__file__).parent
ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

OURS = {PACKAGE.name, *(path.stem for path in (ROOT / "tests" / "support").iterdir())}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(wanted: list[str]) -> set[str]:
    found = [re.match(r"[\w.-]+", each) for each in wanted]
    return {normal(each[0]) for each in found if each is not None}


def imported(folder: Path) -> Iterator[str]:
    """Modules, also those that are imported only when something is called."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module is not None:
                yield node.module


def foreign(folder: Path) -> set[str]:
    """By the names under which they are installed."""
    installed, found = packages_distributions(), set[str]()
    for module in imported(folder):
        top = module.split(".")[0]
        if top in OURS or top in sys.stdlib_module_names:
            continue
        shared = [each for prefix, each in SHARED.items() if f"{module}.".startswith(f"{prefix}.")]
        found.add((shared or [normal(installed[top][0])])[0])
    return {PARTS.get(name, name) for name in found}


PARTS = {"pydantic-monty-client": "pydantic-monty"}
"""Distributions that are half of one, which holds both halves to one version."""

SHARED = {
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.exporter": "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry.proto": "opentelemetry-proto",
    "opentelemetry": "opentelemetry-api",
}
"""Packages that several distributions have a part of, by the first that says so."""

STARTS_US = {"hypercorn"}
"""As ``docs/howto/service.rst`` says; our own listeners do without."""


def test_the_package_declares_what_it_imports_and_nothing_else() -> None:
    extra = names(PROJECT["project"]["optional-dependencies"]["otel"])
    assert foreign(PACKAGE) - extra | STARTS_US == names(PROJECT["project"]["dependencies"])
    assert extra <= foreign(PACKAGE)


def test_the_tests_have_what_is_optional() -> None:
    extra = names(PROJECT["project"]["optional-dependencies"]["otel"])
    assert extra <= names(PROJECT["dependency-groups"]["tests"])


def test_the_tests_declare_what_they_import() -> None:
    declared = names(PROJECT["project"]["dependencies"])
    declared |= names(PROJECT["dependency-groups"]["tests"])
    assert foreign(ROOT / "tests") <= declared
