"""The diagrams of ``emceepee://diagrams``, drawn from the tables the code runs on."""

from __future__ import annotations

from .states import CALL, ELICITATION, SAMPLING, TASK, Table

ENTITIES = """flowchart TB
    subgraph client["Client"]
        OC[tool calls]
    end
    subgraph session["Session of emceepee"]
        Calls[(calls and tasks)]
        Questions[(elicitations and sampling)]
        Events[(events, delivered once)]
        Buffers[(notifications and logs)]
        Timers[(timers)]
    end
    subgraph backends["Backends of this session"]
        B1[server 1]
        B2[server 2]
    end
    OC -->|execute_tool, get_task_result| Calls
    OC -->|respond_to_elicitation, respond_to_sampling| Questions
    OC -->|await_activity| Events
    OC -->|get_notifications, get_logs| Buffers
    OC -->|set_timer| Timers
    Calls -->|tools/call| B1 & B2
    B1 & B2 -->|elicitation/create, sampling/createMessage| Questions
    B1 & B2 -->|notifications/*, stderr| Buffers
    Calls & Questions & Timers & Buffers -->|publish| Events"""


def state_diagram(table: Table) -> str:
    """The table in mermaid."""
    lines = ["stateDiagram-v2", f"    [*] --> {table.start.value} : {table.entered}"]
    lines += [f"    {s.source.value} --> {s.target.value} : {s.cause}" for s in table.steps]
    end = f" : {table.kept}" if table.kept else ""
    lines += [f"    {state.value} --> [*]{end}" for state in table.states if table.is_final(state)]
    return "\n".join(lines)


def diagrams() -> list[dict[str, str]]:
    drawn = [
        {"name": t.name, "description": t.description, "mermaid": state_diagram(t)}
        for t in (TASK, ELICITATION, SAMPLING, CALL)
    ]
    entities = {
        "name": "entity_relationships",
        "description": "What a session owns and who talks to what",
        "mermaid": ENTITIES,
    }
    return [*drawn, entities]
