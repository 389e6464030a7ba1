from __future__ import annotations

import enum
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.model.states import (
    BACKEND,
    CALL,
    ELICITATION,
    SAMPLING,
    TASK,
    BackendState,
    CallState,
    ImpossibleStep,
    QuestionState,
    Table,
    TaskState,
    step,
)

TABLES = (TASK, ELICITATION, SAMPLING, CALL, BACKEND)
STATES: dict[str, type[enum.Enum]] = {
    TASK.name: TaskState,
    ELICITATION.name: QuestionState,
    SAMPLING.name: QuestionState,
    CALL.name: CallState,
    BACKEND.name: BackendState,
}
tables = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def reachable(table: Table, start: enum.Enum) -> set[enum.Enum]:
    seen, todo = {start}, [start]
    while todo:
        new = table.follows(todo.pop()) - seen
        seen |= new
        todo += new
    return seen


def pairs(table: Table) -> Iterator[tuple[enum.Enum, enum.Enum]]:
    for source in STATES[table.name]:
        for target in STATES[table.name]:
            yield source, target


@tables
def test_every_state_of_a_table_is_reachable_from_its_start(table: Table) -> None:
    assert reachable(table, table.start) == set(table.states)


@tables
def test_from_every_state_something_final_is_reachable(table: Table) -> None:
    for state in table.states:
        assert any(table.is_final(end) for end in reachable(table, state))


@tables
def test_step_takes_exactly_the_arrows_of_the_table(table: Table) -> None:
    arrows = {(arrow.source, arrow.target) for arrow in table.steps}
    for source, target in pairs(table):
        if (source, target) in arrows:
            assert step(table, source, target) is target
        else:
            with pytest.raises(ImpossibleStep, match=f"{source.value} -> {target.value}"):
                step(table, source, target)


@tables
def test_nothing_leaves_a_final_state(table: Table) -> None:
    for source, target in pairs(table):
        if table.is_final(source):
            with pytest.raises(ImpossibleStep):
                step(table, source, target)


@tables
def test_every_arrow_has_a_cause_and_no_arrow_is_drawn_twice(table: Table) -> None:
    assert all(arrow.cause for arrow in table.steps)
    assert len(set(table.steps)) == len(table.steps)


def test_the_tables_name_the_states_the_contract_names() -> None:
    assert {state.value for state in TASK.states} == {
        "working", "completed", "failed", "cancelled", "expired"
    }  # fmt: skip
    assert {state.value for state in ELICITATION.states if ELICITATION.is_final(state)} == {
        "accepted", "declined", "cancelled", "expired", "rejected"
    }  # fmt: skip
    assert {state.value for state in SAMPLING.states if SAMPLING.is_final(state)} == {
        "completed", "cancelled", "expired", "rejected"
    }  # fmt: skip
    assert {state.value for state in BACKEND.states} == {
        "connecting", "connected", "degraded", "reconnecting", "disconnected", "error",
        "not_connected", "idle", "disabled",
    }  # fmt: skip


@tables
def test_a_fate_is_one_step_for_what_has_one_fate(table: Table) -> None:
    if table is not BACKEND:
        assert all(table.is_final(state) for state in table.states if state is not table.start)


@given(st.lists(st.sampled_from(BackendState), max_size=20))
def test_a_walk_of_a_backend_never_ends_half_way(wishes: list[BackendState]) -> None:
    state: BackendState = BackendState.NOT_CONNECTED
    for wish in wishes:
        try:
            state = step(BACKEND, state, wish)
        except ImpossibleStep:
            assert wish not in BACKEND.follows(state)
    # Wherever it is: it is over, or it can be removed.
    assert BACKEND.is_final(state) or BackendState.DISCONNECTED in BACKEND.follows(state)
