from __future__ import annotations

import re

import pytest

from emceepee_trio.model.diagrams import diagrams, state_diagram
from emceepee_trio.model.states import BACKEND, CALL, ELICITATION, SAMPLING, TASK, Table

TABLES = (TASK, ELICITATION, SAMPLING, CALL, BACKEND)
ARROW = re.compile(r"    (\S+) --> (\S+)(?: : (.+))?")


def arrows(drawn: str) -> list[tuple[str, str, str]]:
    first, *lines = drawn.split("\n")
    assert first == "stateDiagram-v2"
    found = [ARROW.fullmatch(line) for line in lines]
    assert all(found), drawn
    return [match.groups("") for match in found if match]  # type: ignore[misc]  # three groups


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_diagram_has_every_arrow_of_its_table_and_no_other(table: Table) -> None:
    drawn = arrows(state_diagram(table))
    assert drawn[0] == ("[*]", table.start.value, table.entered)
    inner = [arrow for arrow in drawn if "[*]" not in arrow]
    assert inner == [(s.source.value, s.target.value, s.cause) for s in table.steps]
    ends = [source for source, target, _ in drawn if target == "[*]"]
    assert ends == [state.value for state in table.states if table.is_final(state)]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_nothing_in_a_diagram_breaks_mermaid(table: Table) -> None:
    for arrow in table.steps:
        # A colon or a semicolon ends a label; a state's name has no blanks.
        assert not set(arrow.cause) & set(":;#{}\n")
        assert re.fullmatch(r"\w+", arrow.source.value)
        assert re.fullmatch(r"\w+", arrow.target.value)


def test_the_diagrams_are_those_the_contract_lists() -> None:
    listed = diagrams()
    assert [diagram["name"] for diagram in listed] == [
        "proxy_task_states",
        "pending_elicitation_states",
        "pending_sampling_states",
        "tool_call_lifecycle",
        "entity_relationships",
    ]
    for diagram in listed:
        assert diagram.keys() == {"name", "description", "mermaid"}
        assert all(diagram.values())


def test_the_entities_are_a_flowchart_with_balanced_groups() -> None:
    drawn = diagrams()[-1]["mermaid"]
    assert drawn.startswith("flowchart ")
    assert drawn.count("subgraph ") == len(re.findall(r"(?m)^ *end$", drawn))
    named = set(re.findall(r"(\w+)(?=\[)", drawn))
    for source, target in re.findall(r"(?m)^    ([\w &]+) -->\|[^|]+\| ([\w &]+)$", drawn):
        assert {*source.split(" & "), *target.split(" & ")} <= named
