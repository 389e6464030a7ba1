from __future__ import annotations

from pathlib import Path

import pytest

from emceepee_trio.config import (
    Config,
    ConfigError,
    Health,
    Http,
    Limits,
    Policy,
    Reconnect,
    Retry,
    Server,
    load,
    parse,
)
from reading import ENVIRON, FILES, FOLDER, only, read, said, servers


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
    ]


def test_a_file_of_windsurf_is_read() -> None:
    found, warnings = from_file("windsurf.json")
    assert found["remote"].url == "https://mcp.example.com/mcp"
    assert found["git"].disabled
    assert warnings == []


def test_a_file_of_gemini_is_read() -> None:
    found, warnings = from_file("gemini.json")
    assert found["http"].allowed_tools == ("search", "read_*")
    assert found["http"].denied_tools == ("read_secret",)
    assert found["http"].description == "Searches"
    assert found["python"].cwd == str(FILES / "tools")
    assert found["python"].env == {"K": "$API_KEY"}
    assert len(warnings) == 4


def test_a_file_of_opencode_is_read() -> None:
    found, warnings = from_file("opencode.json")
    assert found == {
        "files": Server(
            "files",
            command="npx",
            args=("-y", "server-files", "/srv"),
            env={"KEY": "s3cret"},
            type="stdio",
        ),
        "web": Server(
            "web",
            url="https://mcp.example.com/mcp",
            headers={"Authorization": "Bearer s3cret"},
        ),
        "old": Server("old", url="https://mcp.example.com/sse", disabled=True),
    }
    assert found["old"].transport == "sse"
    assert warnings == [
        "mcp.files.timeout: ignored, it means nothing here",
        "mcp.emceepee: skipped, it is emceepee itself",
        "mcp.elsewhere: skipped, it says neither a command nor a url",
        'ignored what is not ours: "model", "server", "tools"',
    ]


def test_a_file_of_zed_is_read() -> None:
    found, warnings = from_file("zed.json")
    assert found == {
        "files": Server("files", command="npx", args=("-y", "server-files")),
        "older": Server("older", command="uvx", args=("mcp-server-git",), env={"KEY": "s3cret"}),
        "web": Server(
            "web",
            url="https://mcp.example.com/mcp",
            headers={"Authorization": "Bearer s3cret"},
        ),
    }
    assert warnings == [
        "context_servers.files.source: ignored, it means nothing here",
        "context_servers.older.settings: ignored, it means nothing here",
        "context_servers.mcp-server-github: skipped, it says neither a command nor a url",
        "context_servers.emceepee: skipped, it is emceepee itself",
        'ignored what is not ours: "theme"',
    ]


def test_a_file_of_amp_is_read() -> None:
    found, warnings = from_file("amp.json")
    assert list(found) == ["playwright", "semgrep"]
    assert found["playwright"].allowed_tools == ("navigate_*",)
    assert found["semgrep"].headers == {"Authorization": "Bearer s3cret"}
    assert warnings == ['ignored what is not ours: "amp.notifications.enabled"']


def test_the_settings_of_vscode_are_read() -> None:
    found, warnings = from_file("vscode_settings.json")
    assert found == {
        "github": Server("github", url="https://api.example.com/mcp/", type="http"),
        "git": Server("git", command="uvx", args=("mcp-server-git",), type="stdio"),
    }
    assert warnings == ['ignored what is not ours: "editor.fontSize", "http.proxy"']
    entry = {"command": "sh"}
    assert list(servers({"mcp.servers": {"a": entry}})) == [Server("a", command="sh")]
    # To opencode this is a server like others.
    assert list(servers({"mcp": {"servers": entry}})) == [Server("servers", command="sh")]


def test_a_file_of_codex_is_read() -> None:
    found, warnings = from_file("codex.toml")
    assert found == {
        "files": Server(
            "files",
            command="npx",
            args=("-y", "server-files"),
            env={"MODE": "plain"},
            inherit_env=("API_KEY", "NOT_HERE"),
            connect_timeout_ms=20_000,
            call_timeout_ms=90_500,
            allowed_tools=("read_*",),
        ),
        "web": Server(
            "web",
            url="https://mcp.example.com/mcp",
            headers={"X-Team": "math", "X-Name": "named", "Authorization": "Bearer s3cret"},
        ),
        "off": Server("off", command="sh", disabled=True),
    }
    assert warnings == [
        "mcp_servers.files.tools: ignored, it means nothing here",
        "mcp_servers.files.required: ignored, it means nothing here",
        "mcp_servers.emceepee: skipped, it is emceepee itself",
        'ignored what is not ours: "model", "approval_policy", "projects"',
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[mcp_servers.a\n", "line 1, column 15: expected ']' at the end of a table declaration"),
        ("a = 1\na = 2\n", "line 2, column 6: cannot overwrite a value"),
        ("a = " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_mistake_in_toml_is_told_with_its_place(content: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"{path}: {line}"


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "emceepee", "args": ["stdio"]},
        {"command": "/home/ada/.local/bin/emceepee", "args": ["stdio", "--demo"]},
        {"type": "local", "command": ["emceepee", "stdio"]},
        {"command": "C:\\tools\\emceepee.exe", "args": ["stdio"]},
        {"command": "uvx", "args": ["--from", "/src/emceepee", "emceepee", "stdio"]},
        {"command": "uvx", "args": ["emceepee-trio", "stdio"]},
        {"command": "pipx", "args": ["run", "emceepee-trio@0.1.0", "stdio"]},
        {"command": "/usr/bin/python3.12", "args": ["-m", "emceepee_trio", "stdio"]},
        {"command": "sh", "args": ["-c", "exec '/opt/e/bin/emceepee' stdio 2>/tmp/log"]},
        {"type": "http", "url": "http://127.0.0.1:8080/mcp?session=5c2a9e01"},
        {"url": "http://localhost:1234/mcp/?a=b&session=window-2"},
        {"command": "npx", "args": ["mcp-remote", "http://[::1]:8080/mcp?session=a"]},
    ],
)
def test_an_entry_of_our_own_is_skipped_whatever_it_is_called(entry: dict[str, object]) -> None:
    other: dict[str, object] = {"command": "sh"}
    for name in ("me", "emceepee"):
        loaded = read({"mcpServers": {name: entry, "other": other}})
        assert loaded.config.servers == (Server("other", command="sh"),)
        assert loaded.warnings == (f"mcpServers.{name}: skipped, it is emceepee itself",)
    loaded = read({"servers": [{"name": "me", **entry}, {"name": "other", **other}]})
    assert loaded.config.servers == (Server("other", command="sh"),)
    assert loaded.warnings == ("servers[0]: skipped, it is emceepee itself",)


def test_local_and_remote_are_understood_anywhere() -> None:
    assert only({"type": "local", "command": ["x", "y"], "environment": {"A": "b"}}) == Server(
        "s", command="x", args=("y",), env={"A": "b"}, type="stdio"
    )
    assert only({"type": "local", "command": "x", "args": ["y"]}) == Server(
        "s", command="x", args=("y",), type="stdio"
    )
    assert only({"type": "remote", "url": "https://h/sse"}) == Server("s", url="https://h/sse")


def test_by_our_own_name_more_is_taken_for_us() -> None:
    for entry in (
        {"url": "https://example.com/mcp"},
        {"command": "/home/ada/bin/my-emceepee-with-logs"},
        {"command": "docker", "args": ["run", "-i", "emceepee"]},
    ):
        assert servers({"mcpServers": {"emceepee": entry}}) == ()
        assert len(servers({"mcpServers": {"other": entry}})) == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "python", "args": ["-m", "emceepee_trio.demo_backend"]},
        {"command": "uvx", "args": ["mcp-server-git", "--repository", "/src/emceepee"]},
        {"command": "ssh", "args": ["host", "emceepee", "stdio"]},
        {"url": "http://127.0.0.1:8080/mcp"},
        {"url": "http://127.0.0.1:8080/api?session=a"},
        {"url": "https://example.com/mcp?session=a"},
    ],
)
def test_what_only_looks_like_us_is_a_server(entry: dict[str, object]) -> None:
    assert [server.name for server in servers({"mcpServers": {"s": entry}})] == ["s"]


def test_what_is_no_url_is_none_of_ours() -> None:
    assert said({"mcpServers": {"s": {"url": "http://[::1/mcp?session=a"}}}) == [
        "mcpServers.s.url: is not a URL (host)"
    ]


def test_where_we_listen_we_are() -> None:
    data = {"mcpServers": {"a": {"url": "http://localhost:8080/mcp"}, "b": {"command": "sh"}}}
    for ports, names in (((8080,), ["b"]), ((8081,), ["a", "b"])):
        loaded = parse(data, folder=FOLDER, environ=ENVIRON, ports=ports)
        assert [server.name for server in loaded.config.servers] == names


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
