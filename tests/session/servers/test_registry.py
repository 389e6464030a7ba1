from __future__ import annotations

from typing import Any

import attrs
import pytest

from emceepee_trio.config import LOCAL, OWN, AllowedProgram, Config, Limits, Policy, Server
from emceepee_trio.errors import Denied, InvalidArguments, LimitReached, ServerNotFound
from emceepee_trio.session.servers.registry import Registry


def url(name: str, where: str = "https://example.org/mcp") -> Server:
    return Server(name, url=where)


def registry(*configured: Server, **limits: Any) -> Registry:
    return Registry(Config(servers=configured, limits=attrs.evolve(Limits(), **limits)))


def names(registry: Registry, principal: str) -> list[str]:
    return sorted(registry.visible(principal))


def test_configured_servers_are_everybodys_and_added_ones_their_principals() -> None:
    known = registry(url("docs"))
    known.add("ada", url("mine"))
    assert names(known, "ada") == ["docs", "mine"]
    assert names(known, "bob") == ["docs"]
    assert known.is_shared("docs")
    assert not known.is_shared("mine")


def test_two_principals_may_use_the_same_name_for_different_servers() -> None:
    known = registry()
    known.add("ada", url("x", "https://ada.example"))
    known.add("bob", url("x", "https://bob.example"))
    known.remove("ada", "x")
    assert names(known, "ada") == []
    assert known.visible("bob")["x"].url == "https://bob.example"


def test_a_configured_name_cannot_be_taken() -> None:
    known = registry(url("docs"))
    known.check("ada", url("docs"))  # the very same is no conflict
    with pytest.raises(InvalidArguments, match="'docs' is configured"):
        known.check("ada", url("docs", "https://evil.example"))


def test_a_configured_name_wins_over_one_that_was_added_before() -> None:
    known = registry()
    known.add("ada", url("docs", "https://old.example"))
    known.reload(Config(servers=(url("docs"),)))
    assert known.visible("ada")["docs"] == url("docs")
    assert known.is_shared("docs")


def test_removing_a_configured_server_does_not_bring_back_what_it_covered() -> None:
    known = registry()
    known.add("ada", url("docs", "https://old.example"))
    known.reload(attrs.evolve(known.config, servers=(url("docs"),)))
    known.remove("bob", "docs")
    assert names(known, "ada") == names(known, "bob") == []


def test_a_removed_server_comes_back_on_reload_only_if_its_entry_has_changed() -> None:
    known = registry(url("docs"))
    known.remove("ada", "docs")
    known.reload(Config(servers=(url("docs"),)))
    assert names(known, "ada") == []
    known.reload(Config(servers=(url("docs", "https://new.example"),)))
    assert names(known, "ada") == ["docs"]


def test_a_removed_server_that_leaves_the_file_and_returns_is_back() -> None:
    known = registry(url("docs"))
    known.remove("ada", "docs")
    known.reload(Config())
    known.reload(Config(servers=(url("docs"),)))
    assert names(known, "ada") == ["docs"]


def test_added_servers_survive_a_reload() -> None:
    known = registry(url("docs"))
    known.add("ada", url("mine"))
    known.reload(Config())
    assert names(known, "ada") == ["mine"]


def test_what_a_reload_leaves_as_it_was_is_known_without_a_closer_look() -> None:
    same, other = url("docs"), url("files")
    known = registry(same, other)
    known.reload(Config(servers=(url("docs"), url("files", "https://example.com/mcp"))))
    now = known.visible("ada")
    assert now["docs"] is same
    assert now["files"] != other


def test_adding_what_is_configured_adds_nothing() -> None:
    known = registry(url("docs"))
    known.add("ada", url("docs"))
    known.reload(Config())
    assert names(known, "ada") == []


def test_adding_a_name_again_replaces_it() -> None:
    known = registry()
    known.add("ada", url("x", "https://old.example"))
    known.check("ada", url("x", "https://new.example"))
    known.add("ada", url("x", "https://new.example"))
    assert known.visible("ada")["x"].url == "https://new.example"


def test_what_is_removed_is_gone() -> None:
    known = registry()
    known.add("ada", url("x"))
    assert known.remove("ada", "x") == url("x")
    with pytest.raises(ServerNotFound, match="no server 'x'; there are none"):
        known.remove("ada", "x")


def test_a_server_of_somebody_else_cannot_be_removed() -> None:
    known = registry()
    known.add("ada", url("x"))
    with pytest.raises(ServerNotFound):
        known.remove("bob", "x")
    assert names(known, "ada") == ["x"]


def test_a_configured_server_that_is_removed_stays_away_from_everybody() -> None:
    known = registry(url("docs"), url("web"))
    assert known.remove("ada", "docs") == url("docs")
    assert names(known, "ada") == names(known, "bob") == ["web"]
    assert not known.is_shared("docs")
    with pytest.raises(ServerNotFound):
        known.remove("bob", "docs")


def test_the_name_of_a_removed_configured_server_is_free() -> None:
    known = registry(url("docs"))
    known.remove("ada", "docs")
    for server in (url("docs", "https://other.example"), url("docs")):
        known.check("ada", server)
        known.add("ada", server)
        assert known.visible("ada")["docs"] == server
        assert names(known, "bob") == []


def test_one_server_too_many_is_refused_but_not_a_replacement() -> None:
    known = registry(url("docs"), servers=2)
    known.check("ada", url("x"))
    known.add("ada", url("x"))
    with pytest.raises(LimitReached, match=r"2 servers \(limits\.servers\)"):
        known.check("ada", url("y"))
    known.check("ada", url("x", "https://new.example"))
    known.check("bob", url("y"))  # whose own they are not
    known.remove("ada", "x")
    known.check("ada", url("y"))


def with_policy(**policy: Any) -> Registry:
    return Registry(Config(policy=Policy(**policy)))


def program(*words: str) -> Server:
    return Server("p", command=words[0], args=words[1:])


def test_a_daemon_that_starts_no_programs_says_so() -> None:
    known = with_policy(spawn="deny")
    with pytest.raises(Denied, match=r"policy\.spawn is deny"):
        known.check("ada", program("npx", "x"))
    known.check("ada", url("x"))


def test_a_daemon_that_may_start_anything_does() -> None:
    for spawn in ("allow", None):
        with_policy(spawn=spawn).check("ada", program("npx", "-c", "anything"))


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (("npx", "-y", "@scope/server-files"), True),
        (("npx", "-y", "@scope/other"), False),
        (("npx", "-y"), False),
        (("npx", "-y", "@scope/server-files", "--unsafe"), False),
        (("npx", "-c", "@scope/server-files"), False),
        (("/tmp/npx", "-y", "@scope/server-files"), False),
        (("NPX", "-y", "@scope/server-files"), False),
        (("uvx", "time"), True),
        (("uvx",), False),
    ],
)
def test_an_allowlist_matches_whole_command_lines(words: tuple[str, ...], allowed: bool) -> None:
    allowlist = (("npx", "-y", "@scope/server-*"), ("uvx", "time"))
    known = with_policy(spawn="allowlist", spawn_allowlist=allowlist)
    server = program(*words)
    if allowed:
        known.check("ada", server)
    else:
        with pytest.raises(Denied, match="spawn_allowlist"):
            known.check("ada", server)


PATTERN = ("npx", "-y", "@scope/server-*")
FOLDER = ("files", "--root=/home/*")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (PATTERN, ("npx", "-y", "@scope/server-files@npm:evil")),
        (PATTERN, ("npx", "-y", "@scope/server-files@user/repo")),
        (PATTERN, ("npx", "-y", "@scope/server-../../tmp/evil")),
        (PATTERN, ("npx", "-y\0", "@scope/server-files")),
        (PATTERN, ("npx", "-Y", "@scope/server-files")),
        (PATTERN, ("npx", "-y", "@scope/server-files", "")),
        (PATTERN, ("npx", "-y", "@scope/server-files\n--evil")),
        (FOLDER, ("files", "--root=/home/..")),
        (FOLDER, ("files", "--root=/home/me/../../etc")),
        (FOLDER, ("files", "--root", "/home/me")),
        (("files", "*"), ("files", "--config=/tmp/evil")),
        (("files", "*", "*"), ("files", "--eval", "x")),
        (("node", "*.mjs"), ("node", "--import=data:text/javascript,x.mjs")),
        (("node", "safe.mjs"), ("node", "./safe.mjs")),
        (("node", "safe.mjs"), ("./node", "safe.mjs")),
        (("node", "safe.mjs"), ("env", "node", "safe.mjs")),
        (("node", "safe.mjs"), ("sh", "-c", "node safe.mjs")),
        (("/opt/servers/*",), ("/opt/servers/../../bin/sh",)),
        (("/opt/servers/*",), ("/opt/servers/x/sh",)),
    ],
)
def test_a_wildcard_is_no_way_out(entry: tuple[str, ...], words: tuple[str, ...]) -> None:
    known = with_policy(spawn="allowlist", spawn_allowlist=(entry,))
    with pytest.raises(Denied, match="no entry"):
        known.check("ada", program(*words))


def listed(**more: Any) -> Registry:
    entry = AllowedProgram(("files", "--stdio"), **more)
    return with_policy(spawn="allowlist", spawn_allowlist=(entry,))


@pytest.mark.parametrize("name", ["PATH", "NODE_OPTIONS", "LD_PRELOAD", "path", "ANYTHING"])
def test_a_listed_command_line_gets_no_variables_of_clients(name: str) -> None:
    server = attrs.evolve(program("files", "--stdio"), env={name: "/evil"})
    with pytest.raises(Denied, match=f'"{name}"; leave it out of env') as caught:
        listed(env=("TOKEN", "Path")).check("ada", server)
    assert "policy.spawn_allowlist" in caught.value.message
    assert "/evil" not in caught.value.message


def test_what_is_not_restricted_by_an_entry_is_what_it_names() -> None:
    server = attrs.evolve(program("files", "--stdio"), env={"TOKEN": "x"})
    assert listed(env=("TOKEN",)).check("ada", server) == server
    with pytest.raises(Denied):
        listed().check("ada", server)


def test_a_listed_command_line_runs_in_no_folder_of_a_clients() -> None:
    server = program("files", "--stdio")
    elsewhere = attrs.evolve(server, cwd="/tmp/evil")
    with pytest.raises(Denied, match="no folder"):
        listed().check("ada", elsewhere)
    with pytest.raises(Denied, match="no folder"):
        listed(cwd="/srv").check("ada", elsewhere)
    there = attrs.evolve(server, cwd="/srv")
    assert listed(cwd="/srv").check("ada", there) == there
    assert listed(cwd="/srv").check("ada", server) == there


def test_of_several_entries_the_one_that_allows_it_counts() -> None:
    entries = (("files", "--stdio"), AllowedProgram(("files", "*"), ("TOKEN",)))
    known = with_policy(spawn="allowlist", spawn_allowlist=entries)
    server = attrs.evolve(program("files", "x"), env={"TOKEN": "x"})
    known.check("ada", server)
    both = attrs.evolve(program("files", "--stdio"), env={"TOKEN": "x"})
    with pytest.raises(Denied):
        known.check("ada", both)


def test_what_is_configured_needs_no_entry() -> None:
    configured = attrs.evolve(program("other"), env={"PATH": "/opt"})
    policy = Policy("allowlist", (("files",),))
    known = Registry(Config((configured,), policy=policy))
    assert known.check("ada", configured) == configured
    known.remove("ada", "p")
    with pytest.raises(Denied):
        known.check("ada", configured)


@pytest.mark.parametrize("policy", [Policy("deny"), Policy("allowlist", (("other",),))])
def test_what_may_not_be_started_any_more_is_gone_after_a_reload(policy: Policy) -> None:
    known = with_policy(spawn="allowlist", spawn_allowlist=(("files", "--stdio"),))
    for server in (program("files", "--stdio"), url("web")):
        known.add("ada", known.check("ada", server))
    known.reload(attrs.evolve(known.config))
    assert names(known, "ada") == ["p", "web"]
    known.reload(Config(policy=policy))
    assert names(known, "ada") == ["web"]


def test_what_is_configured_is_the_operators_where_that_is_said() -> None:
    known = Registry(Config(servers=(url("docs"),), policy=Policy(configured="operator")))
    known.add("ada", url("mine"))
    with pytest.raises(Denied, match=r"policy\.configured"):
        known.remove("ada", "docs")
    with pytest.raises(Denied, match=r"policy\.configured"):
        known.switch("ada", "docs", on=False)
    assert known.remove("ada", "mine") == url("mine")
    for operator in (OWN, LOCAL):
        known.remove(operator, "docs")
        with pytest.raises(Denied, match=r"policy\.configured"):
            known.restore("ada", "docs")
        known.restore(operator, "docs")
    assert names(known, "bob") == ["docs"]


def test_an_edit_that_may_not_be_started_any_more_ends_at_a_reload() -> None:
    program = Server("run", command="good")
    known = Registry(Config(servers=(program,), policy=Policy(spawn="allow")))
    known.edit(OWN, attrs.evolve(program, command="bad", description="Mine"))
    assert known.visible("ada")["run"].command == "bad"
    known.reload(attrs.evolve(known.config, policy=Policy(spawn="deny")))
    assert known.visible("ada")["run"] == program
    known.edit(OWN, attrs.evolve(program, description="Mine"))
    known.reload(known.config)
    assert known.visible("ada")["run"].description == "Mine"


def test_an_edit_is_taken_back_by_who_runs_the_daemon_alone() -> None:
    known = registry(url("docs"))
    known.edit(OWN, attrs.evolve(url("docs"), description="Mine"))
    known.switch("ada", "docs", on=False)
    with pytest.raises(Denied, match="'docs' is edited"):
        known.restore("ada", "docs")
    known.switch("ada", "docs", on=True)
    known.remove("ada", "docs")
    assert known.changed() == {"docs": None}
    known.reload(known.config)
    known.restore("ada", "docs")
    assert known.visible("bob")["docs"].description == "Mine"
    known.remove("ada", "docs")
    known.restore(OWN, "docs")
    assert known.visible("bob")["docs"] == url("docs")


def test_what_was_only_disabled_is_restored_by_anybody() -> None:
    known = registry(url("docs"))
    known.switch(OWN, "docs", on=False)
    known.restore("ada", "docs")
    assert known.visible("bob")["docs"] == url("docs")
    with pytest.raises(InvalidArguments, match="nothing to restore"):
        known.restore("ada", "docs")
