"""That the table of known bugs is of this package, and that its page is of that table."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from mutants import Mutant
from planting import ALL, PACKAGE, PAGE, ROOT, Fate, Outcome, page, planted

pytestmark = pytest.mark.once

TESTS = Path(__file__).parent


def source_of(file: str) -> str:
    return (ROOT / PACKAGE / file).read_text()


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.bug)
def test_every_bug_can_be_planted_and_is_a_program(mutant: Mutant) -> None:
    for file, with_bug in planted(mutant, source_of).items():
        assert ast.dump(ast.parse(with_bug)) != ast.dump(ast.parse(source_of(file)))


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.bug)
def test_every_bug_has_tests_that_exist(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert not name or f"def {name}(" in (TESTS / file).read_text()


def test_what_is_not_there_just_once_is_not_planted() -> None:
    bug = Mutant("b", "f.py", "x", "y", ("t.py",))
    assert planted(bug, lambda _: "a = x") == {"f.py": "a = y"}
    for source in ("a = b", "x = x"):
        with pytest.raises(ValueError, match="times"):
            planted(bug, {"f.py": source}.__getitem__)


def test_a_bug_may_have_pieces_in_many_places() -> None:
    also = (("f.py", "b", "c"), ("g.py", "x", "z"))
    bug = Mutant("b", "f.py", "x", "y", ("t.py",), also)
    sources = {"f.py": "x = b", "g.py": "x"}
    assert planted(bug, sources.__getitem__) == {"f.py": "y = c", "g.py": "z"}


def test_every_bug_has_a_name_of_its_own() -> None:
    assert len({mutant.bug for mutant in ALL}) == len(ALL)


def test_the_page_shows_every_bug_and_that_each_was_caught() -> None:
    blank = page(Outcome(mutant, Fate.CAUGHT, "") for mutant in ALL)
    shown = [line for line in PAGE.read_text().splitlines() if "     - ``" not in line]
    rest = [line for line in blank.splitlines() if "     - ``" not in line]
    assert shown == rest


def test_whoever_asks_for_help_plants_nothing() -> None:
    command = [sys.executable, str(TESTS / "support" / "planting.py"), "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("usage: planting.py")
