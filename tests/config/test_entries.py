from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

from emceepee_trio.config import ConfigError, Server, parse, server_from_arguments
from emceepee_trio.config.entries import edited, entry_of, shown
from emceepee_trio.model.text.redact import HIDDEN

PROGRAM = Server(
    "git",
    command="uvx",
    args=("mcp-server-git", "--token", "hush", "--key", "hush-too", "--folder", "/src"),
    env={"PASS": "hush", "PLAIN": "hush"},
    allowed_tools=("git_*",),
)
PAGE = Server("docs", url="https://h.example/mcp", headers={"Authorization": "Bearer hush"})


def made(server: Server, said: dict[str, Any]) -> Server:
    return server_from_arguments(edited(server, said))


def problems(server: Server, said: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        edited(server, said)
    return str(caught.value)


@pytest.mark.parametrize("server", [PROGRAM, PAGE, Server("x", url="https://me:hush@h/?k=hush")])
def test_no_secret_is_shown_and_what_is_not_touched_is_what_it_was(server: Server) -> None:
    entry = shown(server)
    assert "hush" not in json.dumps(entry)
    assert made(server, entry) == made(server, {}) == server
    assert server_from_arguments(entry_of(server)) == server


def test_a_secret_stays_with_the_option_that_it_was_of() -> None:
    args = ["--key", HIDDEN, "mcp-server-git", "--verbose", "--token", HIDDEN]
    new = made(PROGRAM, {"args": args})
    assert new.args == ("--key", "hush-too", "mcp-server-git", "--verbose", "--token", "hush")
    assert new.env == PROGRAM.env


@pytest.mark.parametrize(
    "args", [["--user", HIDDEN], ["--token", HIDDEN, "--token", HIDDEN], [f"--url={HIDDEN}"]]
)
def test_what_is_hidden_somewhere_else_is_not_guessed(args: list[str]) -> None:
    assert HIDDEN in problems(PROGRAM, {"args": args})


def test_variables_are_kept_by_their_names() -> None:
    assert made(PROGRAM, {"env": {"PASS": HIDDEN, "NEW": "1"}}).env == {"PASS": "hush", "NEW": "1"}
    assert "env.NEW" in problems(PROGRAM, {"env": {"NEW": HIDDEN}})
    assert made(PROGRAM, {"env": None}).env == {}


def test_what_a_variable_stood_for_is_shown_as_that_variable_and_kept() -> None:
    entry = {"url": "https://${HOST}/mcp", "headers": {"X": "${TOKEN}"}}
    environ = {"HOST": "h.example", "TOKEN": "hush"}
    (server,) = parse(
        {"mcpServers": {"a": entry}}, folder=Path("/"), environ=environ
    ).config.servers
    assert shown(server) == entry
    assert made(server, entry) == server
    assert "a variable" in problems(server, {"headers": {"Y": "${TOKEN}"}})


def expanded(entry: dict[str, Any], **environ: str) -> Server:
    found = parse({"mcpServers": {"a": entry}}, folder=Path("/"), environ=environ)
    return found.config.servers[0]


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://${HOST}/mcp?api_key=hush", "https://${HOST}/mcp?api_key=***"),
        ("https://me:hush@${env:HOST}:${PORT:-80}/", "https://***@${env:HOST}:${PORT:-***}/"),
        ("https://hush${AT}h.example/", HIDDEN),
        ("https://hush:${AT}h.example/", HIDDEN),
        ("${NONE:-https://h.example/hush}", "${NONE:-***}"),
        ("https://${HOST}:${PORT}/mcp", "https://${HOST}:${PORT}/mcp"),
        ("${BASE}/mcp", "${BASE}/mcp"),
        ("https://h.example/s/${PART}/mcp", "https://h.example/s/${PART}/mcp"),
        ("https://h.example/s/hush0123456789ab/${PART}", "https://h.example/s/***/${PART}"),
    ],
)
def test_of_a_url_with_variables_no_more_is_shown_than_of_another(url: str, seen: str) -> None:
    base = "https://h.example"
    server = expanded({"url": url}, HOST="h.example", PORT="1", AT="1@", BASE=base, PART="hush")
    entry = shown(server)
    assert entry == {"url": seen}
    assert made(server, entry) == server
    # Where it is only looked at, nobody has to see that it is somebody's.
    assert server.target == seen.replace(f"{HIDDEN}@", "")


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (["--token=${PREFIX}hush"], ["--token=***"]),
        (["--token=${PREFIX}"], ["--token=${PREFIX}"]),
        (["--token", "${PREFIX}hush"], ["--token", HIDDEN]),
        (["--token", "${PREFIX}"], ["--token", "${PREFIX}"]),
        (["${OPTION}", "${PREFIX}hush"], ["${OPTION}", HIDDEN]),
        (["${NONE:-hush}", "${PREFIX}/src"], ["${NONE:-***}", "${PREFIX}/src"]),
        (
            ["-H", "Authorization: Bearer ${TOKEN:-hush}"],
            ["-H", "Authorization: Bearer ${TOKEN:-***}"],
        ),
        (["https://${PREFIX}/?k=hush"], ["https://${PREFIX}/?k=***"]),
    ],
)
def test_of_words_with_variables_no_more_is_shown_than_of_others(
    words: list[str], seen: list[str]
) -> None:
    server = expanded({"command": "run", "args": words}, PREFIX="p", OPTION="--key", TOKEN="t")
    assert shown(server)["args"] == seen
    assert made(server, shown(server)) == server
    assert server.target == " ".join(
        word if " " not in word or HIDDEN in word else f"'{word}'" for word in ["run", *seen]
    )


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("${PREFIX}hush", HIDDEN),
        ("hush ${PREFIX}", HIDDEN),
        ("$${PREFIX} ${PREFIX}", HIDDEN),
        ("${TOKEN:-hush}", "${TOKEN:-***}"),
        ("${TOKEN:-hu}sh}", HIDDEN),
        ("Bearer ${PREFIX}", "Bearer ${PREFIX}"),
        ("${PREFIX}" * 99, HIDDEN),
    ],
)
def test_what_is_written_beside_a_variable_is_as_hidden_as_without_one(
    value: str, seen: str
) -> None:
    server = expanded({"command": "run", "env": {"X": value}}, PREFIX="p")
    assert shown(server)["env"] == {"X": seen}
    assert made(server, shown(server)) == server
    remote = expanded({"url": "https://h.example", "headers": {"X": value}}, PREFIX="p")
    assert shown(remote)["headers"] == {"X": seen}
    assert made(remote, shown(remote)) == remote


@pytest.mark.parametrize(
    "url", ["https://evil.example/mcp", "http://h.example/mcp", "https://h.example:1/", "https://["]
)
def test_a_header_that_was_kept_for_one_host_goes_to_no_other(url: str) -> None:
    for said in ({"url": url}, {"url": url, "headers": {"Authorization": HIDDEN}}):
        assert "headers.Authorization" in problems(PAGE, said)
    assert edited(PAGE, {"url": url, "headers": None})["url"] == url


def test_on_the_same_host_a_header_is_kept() -> None:
    new = made(PAGE, {"url": "https://h.example/other", "headers": {"Authorization": HIDDEN}})
    assert new.headers == PAGE.headers


def test_a_url_is_said_anew_or_stays() -> None:
    server = Server("x", url="https://me:hush@h.example/mcp?key=hush")
    assert "url" in problems(server, {"url": f"https://{HIDDEN}@evil.example/mcp?key={HIDDEN}"})
    assert "url" in problems(server, {"url": f"https://h.example/mcp?key={HIDDEN}"})


def test_null_takes_out_what_was_there_and_what_is_for_all_stays() -> None:
    server = attrs.evolve(PROGRAM, start="auto", scope="principal")
    entry = edited(server, {"allowed_tools": None})
    assert "allowed_tools" not in entry
    assert {"start": "auto", "scope": "principal"}.items() <= entry.items()


def test_a_long_word_is_not_shown_in_part() -> None:
    server = Server("x", command="run", args=("a" * 1000,))
    assert shown(server)["args"] == [HIDDEN]
    assert made(server, shown(server)) == server
