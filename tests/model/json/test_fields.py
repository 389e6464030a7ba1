from __future__ import annotations

from typing import Annotated, Any, get_args

import attrs
import pytest

from emceepee_trio.config import Config
from emceepee_trio.config.limits import Limits
from emceepee_trio.config.server import Server
from emceepee_trio.config.settings import Http
from emceepee_trio.model.json.fields import Bounds, Doc, Pattern, Secret, fields_of, frozen
from emceepee_trio.model.json.strict import json_schema, structure
from emceepee_trio.tools import TOOLBOX
from emceepee_trio.tools.common.registry import Tool
from emceepee_trio.tools.execution import ExecuteTool
from emceepee_trio.tools.news.timers import SetTimer
from emceepee_trio.tools.prompts import Complete


@frozen
class Base:
    name: Annotated[str, Pattern("[a-z]+", "small letters"), Doc("Its name.")]
    key: Annotated[str | None, Secret()] = None
    plain: int = 3


@frozen
class Derived(Base):
    plain: Annotated[int, Bounds(1, 9)] = 5
    other: Annotated[tuple[str, ...], Secret()] = attrs.field(default=(), kw_only=True)


INSIDE = [
    tuple[Annotated[int, Bounds(1, 9)], ...],
    Annotated[int, Bounds(1, 9)] | None,
    Annotated[dict[str, Annotated[int, Bounds(1, 9)]], Doc("Numbers.")],
]


@attrs.frozen
class Unread:
    number: Annotated[int, Bounds(1, 9)] = 5


def test_mypy_sees_which_arguments_are_required_and_so_does_python() -> None:
    # mypy is run on tests, too, and complains of an ignore that it does not need.
    with pytest.raises(TypeError, match="name"):
        Server()  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="server"):
        ExecuteTool()  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="tool"):
        ExecuteTool("git")  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="argument"):
        Complete("git", ref=None)  # type: ignore[call-arg, arg-type]  # what is tested
    with pytest.raises(TypeError, match="message"):
        SetTimer(1000)  # type: ignore[call-arg]  # what is tested
    with pytest.raises(TypeError, match="sesions"):
        Limits(sesions=5)  # type: ignore[call-arg]  # what is tested


def test_mypy_sees_types_and_that_nothing_can_be_set() -> None:
    Limits(sessions="5")  # type: ignore[arg-type]  # what is tested; structure() is what checks
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Limits().sessions = 5  # type: ignore[misc]  # what is tested
    with pytest.raises(TypeError, match="nme"):
        attrs.evolve(Server("a"), nme="b")  # type: ignore[call-arg]  # what is tested


def test_what_has_a_default_needs_no_argument() -> None:
    assert Config() == Config(servers=(), limits=Limits())
    assert ExecuteTool("git", "log").args == {}


def test_marks_become_metadata_and_annotations_types() -> None:
    name, key, plain, other = sorted(
        fields_of(Derived), key=lambda a: ["name", "key", "plain", "other"].index(a.name)
    )
    assert name.type is str
    assert name.metadata == {"pattern": "[a-z]+", "expected": "small letters", "doc": "Its name."}
    assert key.type == str | None
    assert key.metadata == {"secret": True}
    assert plain.type is int
    assert plain.metadata == {"low": 1, "high": 9}
    assert other.metadata == {"secret": True}


def test_a_secret_is_in_no_repr() -> None:
    shown = repr(Derived("a", key="s3cret", other=("s3cret",)))
    assert shown == "Derived(name='a', plain=5)"
    assert "s3cret" not in repr(Server("a", url="http://s3cret", headers={"a": "s3cret"}))
    assert "s3cret" not in repr(Config(http=Http(tokens={"me": "s3cret"})))


def test_marks_that_nobody_has_read_are_refused() -> None:
    for read in (fields_of, json_schema, lambda cls: structure({"number": 100}, cls)):
        with pytest.raises(TypeError, match="Unread is not made by"):
            read(Unread)


@pytest.mark.parametrize("hint", INSIDE, ids=str)
def test_marks_where_nobody_would_look_are_refused(hint: Any) -> None:
    with pytest.raises(TypeError, match=r"number: .* not inside"):
        frozen(type("Odd", (), {"__annotations__": {"number": hint}}))


def test_no_class_shows_its_secrets() -> None:
    for cls in {cls for tool in TOOLBOX.tools for cls in classes(tool.arguments)} | classes(Config):
        for a in fields_of(cls):
            assert a.repr is not a.metadata.get("secret", False)


def classes(cls: Any) -> set[Any]:
    """That one and those in it."""
    if attrs.has(cls):
        return {cls}.union(*(classes(a.type) for a in fields_of(cls)))
    return set().union(*map(classes, get_args(cls)))


@pytest.mark.parametrize("tool", TOOLBOX.tools, ids=lambda tool: tool.name)
def test_the_marks_of_every_tool_are_read(tool: Tool) -> None:
    fields_of(tool.arguments)
