from __future__ import annotations

import tomllib

import pytest

from emceepee_trio.model.json.edits import NoObject
from emceepee_trio.model.text.toml_edits import put, take

NEW = {"command": "/x", "args": ["stdio"], "env": {"A": "b"}}
PATH = ("mcp_servers",)

FILES = {
    "nothing": "",
    "a comment": "# only\n",
    "a key": 'model = "x"\n',
    "no end of line": 'model = "x"',
    "a table before others": '[mcp_servers.a]\ncommand = "x" # hi\n\n[other]\nx = 1\n',
    "one line": 'mcp_servers = {a = {command="x"}}\n',
    "a table of tables": '[mcp_servers]\na = {command="x"}\n',
    "dotted": 'mcp_servers.a.command = "x"\n',
    "apart": '[mcp_servers.a]\ncommand="x"\n[[o]]\ny=1\n[mcp_servers.b]\ncommand="z"\n',
    "carriage returns": '[mcp_servers.a]\r\ncommand="x"\r\n',
    "a text of many lines": '[mcp_servers.a]\ncommand="""\n[mcp_servers.new]\n"""\n',
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_only_our_table_comes_and_goes(text: str) -> None:
    wanted = tomllib.loads(text)
    wanted.setdefault("mcp_servers", {})["new"] = NEW
    after = put(text, PATH, {"new": NEW})
    assert tomllib.loads(after) == wanted
    assert put(after, PATH, {"new": NEW}) == after
    left = take(after, PATH, "new")
    assert left in (text, text + "\n", text + "\r\n")


def test_what_stands_behind_it_stays() -> None:
    after = put("a = 1\n", PATH, {"new": NEW}) + "\n# a note\n[b]\nc = 1\n"
    assert take(after, PATH, "new") == "a = 1\n\n# a note\n[b]\nc = 1\n"


def test_an_entry_that_somebody_else_wrote_goes_with_its_tables() -> None:
    text = '[mcp_servers.new]\ncommand = "x"\nargs = [\n  "a",\n]\n[mcp_servers.new.env]\nA = "b"\n'
    assert tomllib.loads(take(text + "[z]\n", PATH, "new")).get("mcp_servers", {}) == {}


def test_what_is_no_table_is_not_made_one() -> None:
    with pytest.raises(NoObject):
        put("mcp_servers = 3\n", PATH, {"new": NEW})


def test_what_is_not_there_is_not_taken() -> None:
    assert take("a = 1 # one\n", PATH, "new") == "a = 1 # one\n"
