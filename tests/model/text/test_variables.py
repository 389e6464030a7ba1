from __future__ import annotations

import pytest

from emceepee_trio.model.text.variables import expand

ENVIRON = {"NAME": "ada", "EMPTY": "", "HOME": "/home/ada", "workspaceFolder": "/w"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain $NAME {x}", "plain $NAME {x}"),
        ("${NAME}", "ada"),
        ("a${NAME}b${env:NAME}c", "aadabadac"),
        ("${NONE:-x y:-z}", "x y:-z"),
        ("${env:NONE:-}", ""),
        ("${NAME:-x}", "ada"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("$${NAME} $$${NAME}", "${NAME} $${NAME}"),
        ("${userHome}/x", "/home/ada/x"),
        ("${workspaceFolder}", "/w"),
    ],
)
def test_variables_are_filled_in(text: str, expanded: str) -> None:
    assert expand(text, ENVIRON) == (expanded, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("${NONE}", "environment variable NONE is not set"),
        ("${env:NONE}", "environment variable NONE is not set"),
        ("${env:cwd}", "environment variable cwd is not set"),
        ("${input:key}", "${input:…} is asked for by VS Code only; use ${env:NAME}"),
        ("${cwd}", "${cwd} is not supported outside VS Code and Cursor; write what it is"),
        ("${/}", "${/} is not supported outside VS Code and Cursor; write what it is"),
        (
            "${command:x.y}",
            "${command} is not supported outside VS Code and Cursor; write what it is",
        ),
        ("${#array}", 'not a variable; write "$${" if it is meant literally'),
        ("${}", 'not a variable; write "$${" if it is meant literally'),
        ("${NAME", '"${" without its "}"; write "$${" if it is meant literally'),
    ],
)
def test_what_cannot_be_filled_in_stays_and_is_told(text: str, said: str) -> None:
    assert expand(f"<{text}", ENVIRON) == (f"<{text}", [said])
