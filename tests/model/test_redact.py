from __future__ import annotations

import pytest

from emceepee_trio.model.redact import LONGEST, label, redact_command, redact_url


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
