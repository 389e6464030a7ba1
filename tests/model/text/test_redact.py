from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpu_time import LINEAR, growth
from emceepee_trio.model.text.redact import (
    HIDDEN,
    LONGEST,
    label,
    redact_command,
    redact_text,
    redact_url,
)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://localhost:3000/mcp", "http://localhost:3000/mcp"),
        ("https://ada:s3cret@h:1/x?key=s3cret&b=s3cret#s3cret", "https://h:1/x?key=***&b=***"),
        ("https://h/x?s3cret", "https://h/x?***"),
        ("https://[::1]:80/", "https://[::1]:80/"),
        ("postgres://ada:s3c/ret@h/db", "***"),
        ("http://[s3cret", "***"),
    ],
)
def test_a_url_is_shown_without_user_and_query_values(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("s/5f0c6d8e-1b2a-4c3d-9e8f-0a1b2c3d4e5f/mcp", "s/***/mcp"),
        ("mcp/NjQ0Zm-Y0ODIt_YjE5Mw", "mcp/***"),
        ("mcp/a1b2c3d4e5f6a7b8/sse", "mcp/***/sse"),
        ("hooks/ghp_16C7e42F292c6912E7710c838347Ae178B4a", "hooks/***"),
        ("t/ghp_16C7e42F/mcp", "t/ghp_***/mcp"),
        ("api/v1.2.3/servers/my-long-service-name-2025/mcp", None),
        ("api/2025-11-25/modelcontextprotocol/mcp", None),
        ("projects/12345678901234567890/locations/europe-west1", None),
    ],
)
def test_a_part_of_a_path_that_nobody_has_thought_up_is_hidden(
    path: str, shown: str | None
) -> None:
    assert redact_url(f"https://h/{path}") == f"https://h/{shown or path}"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["npx", "-y", "a b"], "npx -y 'a b'"),
        (["x", "--api-key", "s3cret", "y"], "x --api-key *** y"),
        (["x", "--TOKEN=s3cret"], "x --TOKEN=***"),
        (["x", "--client-secret", "s3cret"], "x --client-secret ***"),
        (["x", "--password", "s3c ret"], "x --password ***"),
        (["docker", "-e", "GITHUB_TOKEN=s3cret"], "docker -e GITHUB_TOKEN=***"),
        (["x", "--header", "Authorization: Bearer s3cret"], "x --header ***"),
        (["x", "--header=X-A: s3cret"], "x --header=***"),
        (["x", "-H", "X-A: s3cret"], "x -H ***"),
        (["x", "postgresql://ada:s3cret@h/db"], "x postgresql://h/db"),
        (["x", "https://h/?q=s3cret"], "x https://h/?q=***"),
        (["sh", "-c", "API_KEY=s3cret run"], "sh -c API_KEY=***"),
        (["sh", "-c", "run --token s3cret"], "sh -c run --token ***"),
        (["x", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"], "x ghp_***"),
        (["x", "github_pat_11AAAA_bbbb", "y"], "x github_pat_*** y"),
        (["x", "sk-ant-api03-abcdef", "--pat=glpat-abcdef12345"], "x sk-*** --pat=glpat-***"),
        (["x", "eyJhbGciOi.eyJzdWIi.abc-def"], "x eyJ***"),
        (["x", "AKIAIOSFODNN7EXAMPLE"], "x AKIA***"),
        (["task-runner", "desk-lamp-switch", "sk-x"], "task-runner desk-lamp-switch sk-x"),
    ],
)
def test_a_command_line_is_shown_without_what_sounds_secret(words: list[str], shown: str) -> None:
    assert redact_command(words) == shown


def test_what_is_shown_has_an_end() -> None:
    assert len(redact_command(["x"] * 10_000)) == LONGEST
    assert len(redact_url("http://h/" + "x" * 10_000)) == LONGEST


@pytest.mark.parametrize(
    ("session_id", "shown"),
    [
        ("default", "default"),
        ("ada/a-long-name", "ada/a-long-name"),
        ("0123456789abcdefghijklmnopqrstuv", "01234567…"),
    ],
)
def test_an_id_is_shown_in_part_and_a_name_whole(session_id: str, shown: str) -> None:
    assert label(session_id) == shown


# As it was written first: right, and quadratic.
WORDS = "key|token|secret|passw|pwd|credential|auth|header|bearer|cookie"
OPTION = re.compile(rf"--?[\w.-]*(?:{WORDS})[\w.-]*", re.IGNORECASE)
SPOKEN = re.compile(
    rf"((?:{WORDS})[\w.-]*\s*[:=]\s*|--?[\w.-]*(?:{WORDS})[\w.-]*\s+|\bbearer\s+).+",
    re.IGNORECASE | re.DOTALL,
)
URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE)


def plainly(text: str) -> str:
    text = URL.sub(lambda found: redact_url(found[0]), text)
    return SPOKEN.sub(lambda found: found[1] + HIDDEN, text)


pieces = st.sampled_from(
    [*WORDS.split("|"), "to", "-", "--", "=", ":", " ", "\n", "x", "x.y", "http://", "a:b@h", "/",
     "?q=", "&", ".", "K", "ſ", "'", "9", "+", "//", "authorization", "é", ",", "{", '"']
)  # fmt: skip
texts = st.lists(pieces, max_size=12).map("".join)


@settings(max_examples=300)
@given(texts)
def test_a_text_is_redacted_as_if_it_were_looked_at_from_everywhere(text: str) -> None:
    assert redact_text(text) == plainly(text)


@given(st.lists(texts, max_size=5))
def test_a_command_is_redacted_word_by_word(words: list[str]) -> None:
    shown, hide = [], False
    for word in words:
        shown.append(HIDDEN if hide else plainly(word))
        hide = OPTION.fullmatch(word) is not None or word == "-H"
    said = " ".join(word if HIDDEN in word else shlex.quote(word) for word in shown)
    assert redact_command(words) == (said if len(said) <= LONGEST else said[: LONGEST - 1] + "…")


@pytest.mark.parametrize(
    "unit", ["x", "-", "key", "-key", "key ", "a:", "a://", "a://b ", "a+", "?&a", "key: ", "\t"]
)
def test_long_words_take_no_longer_than_they_are(unit: str) -> None:
    def make(size: int) -> Callable[[], object]:
        text = unit * (size // len(unit))
        return lambda: redact_command([text, "http://" + text, "http://h/?" + text, "-" + text])

    assert growth(make, 20_000) < LINEAR


@pytest.mark.parametrize("length", [LONGEST - 5, LONGEST, 2 * LONGEST, 10 * LONGEST])
def test_no_secret_comes_to_light_where_a_text_is_cut(length: int) -> None:
    for start in range(LONGEST - 30, LONGEST + 30):
        for secret in (
            f"https://ada:{'s3cret' * length}@h/",
            f"https://{'s3cret' * length}@h/",
            f"https://h/{'x' * length}?q=s3cret",
            f"--api-key {'s3cret' * length}",
            f"key={'s3cret' * length}",
            f"bearer\t{'s3cret' * length}",
        ):
            assert "s3c" not in redact_command(["x" * start + " " + secret])
            assert "s3c" not in redact_text("x" * start + " " + secret)
