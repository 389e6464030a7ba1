from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.config.bounds import MAX_METRIC_LABEL, MAX_METRIC_SERVERS, MAX_METRIC_TOOLS
from emceepee_trio.telemetry.labels import OTHER, SHARE, Labels, shown

names = st.text(st.characters(exclude_categories=()), max_size=2 * MAX_METRIC_LABEL)


def test_a_flood_of_servers_leaves_the_configured_ones_their_names() -> None:
    labels = Labels({"git", "files"}.__contains__)
    for number in range(2 * MAX_METRIC_SERVERS):
        labels.server(f"flood-{number}")
    assert labels.server("git") == "git"
    assert labels.server("flood-0") == "flood-0"
    assert labels.server("one more") == OTHER
    assert labels.tool("one more", "log", exists=True) == (OTHER, OTHER)


def test_a_server_with_many_tools_leaves_places_to_others() -> None:
    labels = Labels()
    many = {labels.tool("many", f"t{number}", exists=True) for number in range(MAX_METRIC_TOOLS)}
    assert len(many) == MAX_METRIC_TOOLS // SHARE + 1
    assert ("many", OTHER) in many
    assert labels.tool("git", "log", exists=True) == ("git", "log")


def test_all_tools_together_are_bounded() -> None:
    labels = Labels()
    shown_tools = {
        labels.tool(f"s{server}", f"t{tool}", exists=True)
        for server in range(2 * SHARE)
        for tool in range(MAX_METRIC_TOOLS // SHARE)
    }
    assert len([each for each in shown_tools if each[1] != OTHER]) == MAX_METRIC_TOOLS


def test_a_tool_that_there_is_not_takes_no_place() -> None:
    labels = Labels()
    assert labels.tool("git", "lgo", exists=False) == ("git", OTHER)
    assert labels.tool("git", "log", exists=True) == ("git", "log")
    assert labels.tool("git", "log", exists=False) == ("git", "log")  # known from before
    for number in range(2 * MAX_METRIC_TOOLS):
        labels.tool("git", f"made up {number}", exists=False)
    assert labels.tool("git", "status", exists=True) == ("git", "status")


@given(names)
def test_a_name_is_one_short_line_of_text(name: str) -> None:
    said = shown(name)
    assert len(said) <= MAX_METRIC_LABEL
    assert said.encode().decode() == said  # no half of a surrogate pair
    assert len(said.splitlines()) <= 1
