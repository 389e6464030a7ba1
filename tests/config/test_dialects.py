from __future__ import annotations

import pytest

from emceepee_trio.config import (
    Config,
    Health,
    Http,
    Limits,
    Policy,
    Reconnect,
    Retry,
    Server,
    load,
)
from reading import ENVIRON, FILES, only, read, said


def from_file(name: str) -> tuple[dict[str, Server], list[str]]:
    loaded = load(FILES / name, ENVIRON)
    return {server.name: server for server in loaded.config.servers}, list(loaded.warnings)


def test_a_file_of_claude_desktop_is_read() -> None:
    found, warnings = from_file("claude_desktop.json")
    assert list(found) == ["filesystem", "github", "remote"]
    assert found["github"].env == {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_example"}
    assert found["remote"].target == ("npx -y mcp-remote https://mcp.example.com/sse --header ***")
    assert warnings == [
        'ignored what is not ours: "globalShortcut", "preferences", "isUsingBuiltInNodeForMcp"'
    ]


def test_a_file_of_claude_code_is_read() -> None:
    found, warnings = from_file("claude_code.json")
    assert found["api-server"] == Server(
        "api-server",
        url="https://api.example.com/mcp",
        headers={"Authorization": "Bearer s3cret"},
        type="http",
        call_timeout_ms=600_000,
    )
    assert found["database"] == Server(
        "database",
        command=str(FILES / "servers/db-server"),
        args=("--config", "config.json"),
        env={"DB_URL": ""},
        type="stdio",
    )
    assert found["asana"].transport == "sse"
    assert warnings == [
        "mcpServers.api-server.alwaysLoad: ignored, it means nothing here",
        "mcpServers.api-server.timeout: taken as milliseconds; call_timeout_ms would be clear",
        "mcpServers.asana.oauth: ignored, it means nothing here; put a token into headers",
    ]


def test_the_whole_state_of_claude_code_is_read() -> None:
    found, warnings = from_file("claude_code_state.json")
    assert list(found) == ["sentry"]
    assert warnings == [
        (
            'ignored what is not ours: "numStartups", "theme", "tipsHistory", '
            '"hasCompletedOnboarding", "oauthAccount", …'
        )
    ]


def test_a_file_of_cursor_is_read() -> None:
    found, warnings = from_file("cursor.json")
    assert found["local"] == Server(
        "local",
        command="python",
        args=("/home/ada/mcp-server.py",),
        env={"API_KEY": "s3cret"},
        type="stdio",
    )
    assert found["web"] == Server("web", url="https://mcp.example.com/sse")
    assert found["web"].transport == "sse"
    assert found["oauth-server"].transport == "http"
    assert warnings == [
        "mcpServers.local.envFile: ignored, it means nothing here; put its variables into env",
        "mcpServers.web.env: ignored, the server has a url",
        "mcpServers.oauth-server.auth: ignored, it means nothing here; put a token into headers",
    ]


def test_a_file_of_vscode_is_read() -> None:
    found, warnings = from_file("vscode.json")
    assert found == {
        "github": Server("github", url="https://api.example.com/mcp/", type="http"),
        "perplexity": Server(
            "perplexity",
            command="npx",
            args=("-y", "server-perplexity-ask"),
            env={"PERPLEXITY_API_KEY": "${input:perplexity-key}"},
            type="stdio",
            disabled=True,
        ),
        "playwright": Server("playwright", command="npx", args=("-y", "@playwright/mcp@latest")),
    }
    assert warnings == [
        "inputs: ignored, it means nothing here",
        "servers.github.gallery: ignored, it means nothing here",
        "servers.playwright.dev: ignored, it means nothing here",
    ]


def test_a_file_of_cline_is_read() -> None:
    found, warnings = from_file("cline.json")
    assert found["weather"].call_timeout_ms == 60_000
    assert found["remote"].disabled
    assert found["remote"].type == "http"
    assert warnings == [
        "mcpServers.weather.autoApprove: ignored, it means nothing here",
        "mcpServers.weather.timeout: taken as seconds; call_timeout_ms would be clear",
        "mcpServers.remote.alwaysAllow: ignored, it means nothing here",
        (
            "mcpServers.remote.disabledTools: ignored, it means nothing here; "
            "list the others in allowed_tools"
        ),
    ]


def test_a_file_of_windsurf_is_read() -> None:
    found, warnings = from_file("windsurf.json")
    assert found["remote"].url == "https://mcp.example.com/mcp"
    assert found["git"].disabled
    assert warnings == []


def test_a_file_of_gemini_is_read() -> None:
    found, warnings = from_file("gemini.json")
    assert found["http"].allowed_tools == ("search", "read_*")
    assert found["python"].cwd == str(FILES / "tools")
    assert found["python"].env == {"K": "$API_KEY"}
    assert len(warnings) == 5


def test_a_file_of_copilot_is_read() -> None:
    found, warnings = from_file("copilot.json")
    assert found["playwright"] == Server(
        "playwright",
        command="npx",
        args=("@playwright/mcp@latest",),
        type="stdio",
        allowed_tools=("*",),
    )
    assert warnings == []


def test_a_file_of_the_gateway_is_read() -> None:
    found, warnings = from_file("gateway.json")
    assert found["calculator"] == Server(
        "calculator",
        url="http://localhost:3000/mcp",
        headers={"X-Team": "math"},
        type="http",
        allowed_tools=("add", "multiply"),
    )
    assert found["data-server"].command == "node"
    assert warnings == []


def test_a_file_of_the_original_is_read() -> None:
    found, warnings = from_file("emceepee.json")
    assert found["local"].restart == Retry(max_attempts=3, base_delay_ms=500, multiplier=3.0)
    assert warnings == []


def test_a_file_of_ours_may_say_everything() -> None:
    loaded = load(FILES / "everything.json", ENVIRON)
    assert loaded.warnings == (
        'policy.spawn_allowlist[0]: "uvx" runs what its arguments name: "mcp-*" allows any program',
    )
    assert loaded.config == Config(
        servers=(
            Server(
                "files",
                command="/home/ada/bin/files",
                args=("--root", "/srv", "${literal}"),
                env={"TOKEN": "s3cret"},
                cwd=str(FILES / "work"),
                allowed_tools=("read_*",),
                start="lazy",
                era="handshake",
                connect_timeout_ms=5000,
                call_timeout_ms=600_000,
                restart=Retry(enabled=False, jitter=0.0),
            ),
            Server(
                "web",
                url="https://user:pass@mcp.example.com/mcp?key=s3cret",
                headers={"Authorization": "Bearer s3cret"},
                reconnect=Reconnect(max_attempts=7),
                propagate_session="mcp-session-id",
            ),
            Server("more", url="http://127.0.0.1:9/mcp"),
        ),
        limits=Limits(sessions=10, execute_timeout_ms=5000, message=1_048_576),
        health=Health(60_000),
        http=Http(
            ("mcp.example.com", "[::1]:8080"), ("https://app.example.com",), {"ada": "s3cret"}
        ),
        policy=Policy("allowlist", (("uvx", "mcp-*"),), "allow"),
        context="off",
        shutdown_grace_ms=2000,
    )


@pytest.mark.parametrize(
    ("spelled", "type_"),
    [
        ("stdio", "stdio"),
        ("http", "http"),
        ("streamable-http", "http"),
        ("streamableHttp", "http"),
        ("streamable_http", "http"),
        ("sse", "sse"),
    ],
)
def test_a_transport_has_several_spellings(spelled: str, type_: str) -> None:
    entry = {"command": "x"} if type_ == "stdio" else {"url": "http://h/mcp"}
    for key in ("type", "transport", "transportType"):
        assert only({**entry, key: spelled}).transport == type_


@pytest.mark.parametrize(
    ("timeout", "milliseconds", "unit"),
    [
        (1, 1000, "seconds"),
        (0.5, 500, "seconds"),
        (3600, 3_600_000, "seconds"),
        (3601, 3601, "milliseconds"),
        (60_000, 60_000, "milliseconds"),
    ],
)
def test_a_timeout_is_seconds_up_to_an_hour(timeout: float, milliseconds: int, unit: str) -> None:
    loaded = read({"mcpServers": {"s": {"command": "x", "timeout": timeout}}})
    assert loaded.config.servers[0].call_timeout_ms == milliseconds
    assert loaded.warnings == (
        f"mcpServers.s.timeout: taken as {unit}; call_timeout_ms would be clear",
    )


def test_our_own_timeout_is_the_one_that_counts() -> None:
    loaded = read({"mcpServers": {"s": {"command": "x", "timeout": 9, "call_timeout_ms": 700}}})
    assert loaded.config.servers[0].call_timeout_ms == 700
    assert loaded.warnings == ("mcpServers.s.timeout: ignored, there is a call_timeout_ms",)


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}, {"isActive": False}])
def test_a_disabled_server_may_lack_its_variables(off: dict[str, object]) -> None:
    entry = {"url": "${input:url}", "headers": {"A": "${NOPE}"}, **off}
    assert only(entry) == Server("s", disabled=True)
    assert said({"mcpServers": {"emceepee": {**entry, "headers": {"A B": ""}}}}) == [
        'mcpServers.emceepee: "emceepee" is our own name, take another',
        'mcpServers.emceepee.headers["A B"]: is not the name of a header',
    ]


def test_a_disabled_server_with_all_its_variables_is_kept_whole() -> None:
    assert only({"command": "${API_KEY}", "disabled": True}) == Server(
        "s", command="s3cret", disabled=True
    )


def test_an_enabled_server_is_enabled() -> None:
    entry = {"command": "x", "enabled": True, "isActive": True}
    assert only(entry) == Server("s", command="x")
    assert only({**entry, "disabled": True}) == Server("s", command="x", disabled=True)


def test_headers_of_a_command_are_ignored() -> None:
    loaded = read({"mcpServers": {"s": {"command": "x", "headers": {"A": "b"}}}})
    assert loaded.config.servers == (Server("s", command="x"),)
    assert loaded.warnings == ("mcpServers.s.headers: ignored, the server has a command",)


def test_null_is_as_if_it_was_not_given() -> None:
    assert only({"command": "x", "url": None, "env": None, "description": None}) == Server(
        "s", command="x"
    )


def test_the_key_is_the_name_whatever_the_entry_says() -> None:
    loaded = read({"mcpServers": {"a": {"name": "Ä", "command": "x"}}})
    assert loaded.config.servers == (Server("a", command="x"),)
    assert loaded.warnings == ('mcpServers.a.name: ignored, "a" is the name',)
