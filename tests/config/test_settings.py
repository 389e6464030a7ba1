from __future__ import annotations

import attrs
import pytest

from emceepee_trio.config import (
    AllowedProgram,
    Config,
    Health,
    Http,
    Lacking,
    Limits,
    Loaded,
    Policy,
    Reconnect,
    Retry,
    Server,
    settings,
)
from emceepee_trio.model.json.strict import Invalid, structure
from reading import only, read, said


def test_an_empty_file_is_all_defaults() -> None:
    assert read({}) == Loaded(Config(), ())


def test_the_defaults_are_those_of_the_contract() -> None:
    minute, mib = 60_000, 1024 * 1024
    assert attrs.asdict(Config()) == {
        "servers": (),
        "limits": {
            "sessions": 1000,
            "session_idle_ms": 5 * minute,
            "servers": 100,
            "calls": 256,
            "starting": None,
            "execute_timeout_ms": 120_000,
            "await_timeout_ms": 30_000,
            "answer_ms": 45_000,
            "reissue_ms": 30_000,
            "list_patience_ms": 5000,
            "calls_bytes": 64 * mib,
            "tasks": 100,
            "task_ttl_ms": 10 * minute,
            "finished_task_ms": 5 * minute,
            "results": 200,
            "results_bytes": 64 * mib,
            "questions": 100,
            "questions_bytes": 4 * mib,
            "question_timeout_ms": 10 * minute,
            "events": 1000,
            "events_bytes": 4 * mib,
            "events_ms": 30 * minute,
            "facts": 5000,
            "facts_in_all": 100_000,
            "notifications": 100,
            "logs": 500,
            "log_bytes": 16 * 1024,
            "message": 16 * mib,
            "values": 1_000_000,
            "body": 4 * mib,
            "body_values": 100_000,
        },
        "health": {"interval_ms": 120_000},
        "http": {"allowed_hosts": (), "allowed_origins": (), "tokens": {}},
        "policy": {
            "spawn": None,
            "spawn_allowlist": (),
            "network": "restricted",
            "configured": "all",
            "roots": None,
        },
        "roots": None,
        "inherit_env": (),
        "context": "full",
        "context_in": "auto",
        "shutdown_grace_ms": 10_000,
        "defaults": {
            "start": "auto",
            "idle_stop_ms": None,
            "scope": "session",
            "linger_ms": 30_000,
            "share_logs": False,
        },
        "codemode": {"calls": 100, "cpu_ms": 10_000, "memory": 64 * mib},
        "results": {"inline_bytes": 16 * 1024, "bytes": 256 * mib, "keep_ms": 30 * minute},
        "native": {"max_name": 45, "max_tools": 100},
        "telemetry": {"traces": False, "metrics": False, "endpoint": None},
        "relay": {
            "elicitation": "auto",
            "sampling": "auto",
            "views": {},
        },
        "page": {"payloads": True},
    }
    assert attrs.asdict(only({"command": "x"})) == {
        "name": "s",
        "url": None,
        "headers": {},
        "command": "x",
        "args": (),
        "env": {},
        "inherit_env": None,
        "cwd": None,
        "type": None,
        "description": None,
        "disabled": False,
        "allowed_tools": None,
        "denied_tools": (),
        "roots": None,
        "start": "auto",
        "era": "auto",
        "connect_timeout_ms": 30_000,
        "call_timeout_ms": None,
        "reissue": "join",
        "restart": {
            "enabled": True,
            "max_attempts": 5,
            "base_delay_ms": 1000,
            "max_delay_ms": 60_000,
            "multiplier": 2.0,
            "jitter": 0.1,
        },
        "reconnect": {
            "enabled": True,
            "base_delay_ms": 1000,
            "multiplier": 2.0,
            "jitter": 0.1,
            "max_attempts": None,
            "max_delay_ms": 180_000,
        },
        "propagate_session": None,
        "idle_stop_ms": None,
        "scope": "session",
        "linger_ms": 30_000,
        "share_logs": False,
        "max_concurrent": None,
        "results": {"inline_bytes": None},
        "native": {"tools": ()},
        "relay": {"elicitation": None, "sampling": None},
    }


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ([], "expected an object, got a list"),
        ("x", "expected an object, got a string"),
        ({"limts": {}}, 'unknown key "limts", did you mean "limits"?'),
        ({"colour": 1}, 'unknown key "colour"'),
        ({"mcpservers": {}}, 'unknown key "mcpservers", did you mean "mcpServers"?'),
        ({"mcpServers": {}, "limit": {}}, 'unknown key "limit", did you mean "limits"?'),
        ({"servers": "x"}, "servers: expected a list or an object, got a string"),
        ({"mcpServers": []}, "mcpServers: expected an object, got a list"),
        ({"mcpClients": None}, "mcpClients: expected an object, got null"),
        ({"servers": ["x"]}, "servers[0]: expected an object, got a string"),
        ({"mcpServers": {"a": "u:p@h"}}, "mcpServers.a: expected an object, got a string"),
        ({"servers": [{"url": "http://h"}]}, "servers[0].name: missing"),
        (
            {"servers": [{"name": 5, "url": "http://h"}]},
            "servers[0].name: expected a string, got 5",
        ),
        ({"limits": []}, "limits: expected an object, got []"),
        (
            {"limits": {"tasks": 0}},
            "limits.tasks: out of range, expected 1 to 100000, got 0",
        ),
        (
            {"limits": {"await_timeout_ms": 1_000_000}},
            "limits.await_timeout_ms: out of range, expected 0 to 900000, got 1000000",
        ),
        (
            {"limits": {"executeTimeoutMs": 3_600_001}},
            "limits.executeTimeoutMs: out of range, expected 0 to 3600000, got 3600001",
        ),
        (
            {"limits": {"task_ttl_ms": 1_800_001}},
            "limits.task_ttl_ms: out of range, expected 100 to 1800000, got 1800001",
        ),
        (
            {"limits": {"event": 1}},
            'limits: unknown key "event", did you mean "events"?',
        ),
        ({"health": {"interval_ms": "2m"}}, 'health.interval_ms: expected an integer, got "2m"'),
        ({"context": "${NOPE}"}, "context: environment variable NOPE is not set"),
        ({"context": "of"}, 'context: expected one of "full", "off", got "of"'),
        ({"shutdown_grace_ms": None}, "shutdown_grace_ms: expected an integer, got null"),
        ({"inherit_env": "HOME"}, 'inherit_env: expected a list or "all", got "HOME"'),
        ({"inherit_env": None}, 'inherit_env: expected a list or "all", got null'),
        (
            {"inherit_env": ["A=b"]},
            'inherit_env[0]: expected the name of a variable, or a glob, got "A=b"',
        ),
        (
            {"inherit_env": ["A", "emceepee_*"]},
            'inherit_env[1]: "emceepee_*" is this daemon\'s own, no server gets it',
        ),
        (
            {"servers": [{"name": "a", "command": "x", "inheritEnv": ["NOTIFY_SOCKET"]}]},
            ('servers[0].inheritEnv[0]: "NOTIFY_SOCKET" is this daemon\'s own, no server gets it'),
        ),
        (
            {"servers": [{"name": "a", "url": "http://h", "inherit_env": ["A"]}]},
            "servers[0].inherit_env: means nothing to a server with a url",
        ),
        (
            {"http": {"allowed_hosts": ["http://h"]}},
            'http.allowed_hosts[0]: expected a host, or host:port, got "http://h"',
        ),
        (
            {"http": {"allowed_hosts": ["*"]}},
            'http.allowed_hosts[0]: expected a host, or host:port, got "*"',
        ),
        (
            {"http": {"allowed_hosts": ["*.example:80"]}},
            'http.allowed_hosts[0]: expected a host, or host:port, got "*.example:80"',
        ),
        (
            {"http": {"allowed_origins": ["https://*"]}},
            (
                "http.allowed_origins[0]: "
                'expected an origin such as "https://example.org", got "https://*"'
            ),
        ),
        (
            {"http": {"allowed_origins": ["h.example"]}},
            (
                "http.allowed_origins[0]: "
                'expected an origin such as "https://example.org", got "h.example"'
            ),
        ),
        (
            {"http": {"tokens": {"ada": "s3 cret"}}},
            "http.tokens.ada: expected visible ASCII characters, got a string",
        ),
        ({"http": {"tokens": ["s3cret"]}}, "http.tokens: expected an object, got a list"),
        (
            {"http": {"tokens": {"ada": "s3cret", "bob": "s3cret"}}},
            'http.tokens.bob: is the token of "ada", too',
        ),
        (
            {"http": {"tokens": {"ada": "s3cret", "bob": {"token": "s3cret"}}}},
            'http.tokens.bob: is the token of "ada", too',
        ),
        ({"http": {"tokens": {"ada": {"view": "core"}}}}, "http.tokens.ada.token: missing"),
        (
            {"http": {"tokens": {"ada": {"token": "s3 cret"}}}},
            "http.tokens.ada.token: expected visible ASCII characters, got a string",
        ),
        ({"http": {"tokens": {"a b": "s3cret"}}}, 'http.tokens["a b"]: is not a name'),
        (
            {"relay": {"views": {"cor": {"sampling": "tools"}}}},
            "relay.views.cor: no view 'cor'; there are tools, core, code, native, server",
        ),
        (
            {"http": {"tokens": {"token": "s3cret"}}},
            "http.tokens.token: is the name of this daemon's operator, take another",
        ),
        (
            {"http": {"tokens": {"local": "s3cret"}}},
            "http.tokens.local: is the name of this daemon's operator, take another",
        ),
        (
            {"policy": {"spawn": "no"}},
            'policy.spawn: expected one of "allow", "allowlist", "deny", got "no"',
        ),
        (
            {"policy": {"spawn": "allowlist"}},
            'policy.spawn_allowlist: is empty; spawn "deny" says the same more clearly',
        ),
        ({"roots": ["https://h/"]}, "roots[0]: expected a folder, or a file:// URI of one"),
        (
            {"roots": [{"uri": "file://h/x"}]},
            "roots[0]: expected a folder, or a file:// URI of one",
        ),
        ({"policy": {"spawn_allowlist": [[]]}}, "policy.spawn_allowlist[0]: is empty"),
        (
            {"policy": {"spawn_allowlist": [{"command": []}]}},
            "policy.spawn_allowlist[0].command: is empty",
        ),
        (
            {"policy": {"spawn_allowlist": [{"command": ["x"], "env": ["A", "PATH"]}]}},
            'policy.spawn_allowlist[0].env: "PATH" would let clients choose the program',
        ),
        (
            {"policy": {"spawn_allowlist": [{"command": ["x"], "env": ["A=b"]}]}},
            'policy.spawn_allowlist[0].env[0]: expected the name of a variable, got "A=b"',
        ),
        (
            {"policy": {"spawn_allowlist": ["npx *"]}},
            'policy.spawn_allowlist[0]: expected a list or an object, got "npx *"',
        ),
        (
            {"limits": {"servers": 1}, "mcpServers": {n: {"command": n} for n in "ab"}},
            "limits.servers: 2 servers, expected at most 1",
        ),
    ],
)
def test_a_problem_is_one_line_with_its_path(data: object, line: str) -> None:
    assert said(data) == [line]


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({}, ": needs a url or a command"),
        (
            {"url": "http://h", "command": "x"},
            ": has both a url and a command; it takes exactly one",
        ),
        ({"command": "x", "comand": "x"}, ': unknown key "comand", did you mean "command"?'),
        ({"command": "x", "colour": 1}, ': unknown key "colour"'),
        ({"command": ["s3cret"]}, ".command: expected a string, got a list"),
        ({"command": ""}, ".command: is empty"),
        ({"command": "a\0b"}, ".command: holds a NUL character"),
        ({"command": "x", "args": "s3cret"}, ".args: expected a list, got a string"),
        ({"command": "x", "args": ["a", 3]}, ".args[1]: expected a string, got an integer"),
        ({"command": "x", "args": ["a\0"]}, ".args[0]: holds a NUL character"),
        ({"command": "x", "env": {"FOO": 7}}, ".env.FOO: expected a string, got an integer"),
        ({"command": "x", "env": {"FOO": "\0"}}, ".env.FOO: holds a NUL character"),
        ({"command": "x", "env": {"A=B": ""}}, '.env["A=B"]: is not the name of a variable'),
        ({"command": "x", "cwd": 5}, ".cwd: expected a string, got 5"),
        ({"command": "x", "type": "http"}, '.type: "http" needs a url, this server has a command'),
        (
            {"url": "http://h", "type": "stdio"},
            '.type: "stdio" needs a command, this server has a url',
        ),
        (
            {"url": "http://h", "type": "ws"},
            '.type: expected one of "stdio", "http", "sse", got "ws"',
        ),
        (
            {"url": "http://h", "restart": {"jitter": 1}},
            ".restart: means nothing to a server with a url",
        ),
        (
            {"command": "x", "reconnectConfig": {"jitter": 1}},
            ".reconnectConfig: means nothing to a server with a command",
        ),
        (
            {"command": "x", "propagate_session": "x-session"},
            ".propagate_session: means nothing to a server with a command",
        ),
        ({"url": "h/mcp"}, ".url: expected an http or https URL"),
        ({"url": "ftp://h"}, '.url: expected an http or https URL, got "ftp:"'),
        ({"url": "${API_KEY}://h"}, ".url: expected an http or https URL"),
        ({"url": "${API_KEY}http://h"}, ".url: expected an http or https URL"),
        ({"url": "http:///mcp"}, ".url: is not a URL (host)"),
        ({"url": "http://[s3cret"}, ".url: is not a URL (host)"),
        ({"url": "http://h:s3cret/"}, ".url: is not a URL (port)"),
        ({"url": "http://h:0/"}, ".url: is not a URL (port)"),
        ({"url": "http://h/a b"}, ".url: is not a URL (white space)"),
        ({"url": 5}, ".url: expected a string, got an integer"),
        (
            {"command": "x", "cwd": {"TOKEN": ["${API_KEY}"]}},
            '.cwd: expected a string, got {"TOKEN":["${API_KEY}"]}',
        ),
        (
            {"url": "http://h", "headers": {"A B": "x"}},
            '.headers["A B"]: is not the name of a header',
        ),
        (
            {"url": "http://h", "headers": {"A": "s3cret\n"}},
            ".headers.A: a header holds visible ASCII characters, and spaces only between them",
        ),
        ({"url": "http://h", "headers": "s3cret"}, ".headers: expected an object, got a string"),
        (
            {"url": "http://h", "propagate_session": "x y"},
            '.propagate_session: expected the name of a header, got "x y"',
        ),
        (
            {"command": "x", "restart": {"max_attempts": "x"}},
            '.restart.max_attempts: expected an integer, got "x"',
        ),
        (
            {"command": "x", "restartConfig": {"maxAttempts": 0}},
            ".restartConfig.maxAttempts: out of range, expected 1 to 1000000, got 0",
        ),
        (
            {"command": "x", "restart": {"base_delay_ms": 100_000}},
            ".restart.max_delay_ms: less than base_delay_ms, 100000",
        ),
        ({"command": "x", "disabled": "true"}, '.disabled: expected true or false, got "true"'),
        ({"command": "x", "allowed_tools": "x"}, '.allowed_tools: expected a list, got "x"'),
        (
            {"command": "x", "start": "now"},
            '.start: expected one of "auto", "eager", "lazy", got "now"',
        ),
        (
            {"command": "x", "era": "stone"},
            '.era: expected one of "auto", "handshake", "modern", got "stone"',
        ),
        (
            {"command": "x", "connect_timeout_ms": 1},
            ".connect_timeout_ms: out of range, expected 100 to 600000, got 1",
        ),
        (
            {"command": "x", "callTimeoutMs": 1},
            ".callTimeoutMs: out of range, expected 100 to 86400000, got 1",
        ),
        ({"command": "x", "timeout": "60"}, '.timeout: expected a number, got "60"'),
        ({"command": "x", "timeout": float("inf")}, ".timeout: expected a number, got Infinity"),
        (
            {"command": "x", "timeout": -1},
            ".timeout: out of range, expected 100 to 86400000, got -1000",
        ),
        (
            {"command": "x", "allowed_tools": [], "allowedTools": []},
            ".allowedTools: given twice, also as allowed_tools",
        ),
        (
            {"command": "x", "cwd": "${workspaceFolder}"},
            (
                ".cwd: ${workspaceFolder} is not supported outside VS Code and Cursor; "
                "write what it is"
            ),
        ),
        (
            {"command": "x", "connect_timeout_ms": "${NUMBER}"},
            '.connect_timeout_ms: expected an integer, got "${NUMBER}"',
        ),
    ],
)
def test_a_problem_of_a_server_is_one_line_with_its_path(
    entry: dict[str, object], line: str
) -> None:
    assert said({"servers": [{"name": "s", **entry}]}) == [f"servers[0]{line}"]
    assert said({"mcpServers": {"s": entry}}) == [f"mcpServers.s{line}"]


def not_set(name: str) -> str:
    return f"environment variable {name} is not set"


@pytest.mark.parametrize(
    ("entry", "lacks", "where"),
    [
        ({"url": "${NOPE}"}, not_set("NOPE"), "url"),
        ({"command": "x", "args": ["-k", "${env:NOPE}"]}, not_set("NOPE"), "args[1]"),
        (
            {"url": "https://h", "headers": {"A-B": "Bearer ${TOKEN}"}},
            not_set("TOKEN"),
            "headers.A-B",
        ),
        (
            {"command": "x", "env": {"A": "${input:key}"}},
            "${input:…} is asked for by VS Code only; use ${env:NAME}",
            "env.A",
        ),
    ],
)
def test_a_server_whose_variables_are_not_set_is_disabled_alone(
    entry: dict[str, object], lacks: str, where: str
) -> None:
    good = {"command": "sh"}
    for data, path in (
        ({"servers": [{"name": "s", **entry}, {"name": "good", **good}]}, "servers[0]"),
        ({"mcpServers": {"s": entry, "good": good}}, "mcpServers.s"),
    ):
        loaded = read(data)
        lacking, other = loaded.config.servers
        assert isinstance(lacking, Lacking)
        assert (lacking.name, lacking.disabled) == ("s", True)
        assert lacking.lacks == f"{lacks} ({where})"
        assert other == Server("good", command="sh")
        assert loaded.warnings == (f"{path}.{where}: {lacks}; so it is disabled",)


def test_nothing_else_is_a_reason_to_leave_a_server_out() -> None:
    """Whatever is wrong is told at once, and then what is not set is, too."""
    assert said({"mcpServers": {"a": {"url": "${NOPE}"}, "b": {"command": 5}}}) == [
        "mcpServers.a.url: environment variable NOPE is not set",
        "mcpServers.b.command: expected a string, got an integer",
    ]
    assert said(
        {"mcpServers": {"a": {"command": "x", "env": {"A": "${NOPE}", "B": "${NOPE"}}}}
    ) == [
        "mcpServers.a.env.A: environment variable NOPE is not set",
        'mcpServers.a.env.B: "${" without its "}"; write "$${" if it is meant literally',
    ]
    assert said({"servers": [{"name": "${NOPE}", "command": "x"}]}) == [
        "servers[0].name: environment variable NOPE is not set"
    ]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("My Server", ', got "My Server"; try "My-Server"'),
        ("github.com/a/b", ', got "github.com/a/b"; try "github.com-a-b"'),
        ("-x", ', got "-x"; try "x"'),
        ("x" * 65, f', got "{"x" * 59}…; try "{"x" * 59}…'),
        ("", ', got ""'),
        ("ü", ', got "ü"'),
    ],
)
def test_a_name_that_will_not_do_is_told_with_one_that_will(name: str, words: str) -> None:
    rule = 'a name is 1 to 64 letters, digits, ".", "_", "-" and starts with a letter or digit'
    assert said({"servers": [{"name": name, "command": "x"}]}) == [
        f"servers[0].name: {rule}{words}"
    ]
    (line,) = said({"mcpServers": {name: {"command": "x"}}})
    assert line.startswith("mcpServers")
    assert line.endswith(f": {rule}{words}")


def test_our_own_name_is_taken() -> None:
    assert said({"mcpServers": {"emceepee": {"command": "x"}}}) == [
        'mcpServers.emceepee: "emceepee" is our own name, take another'
    ]


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "https://h/mcp"}, "http"),
        ({"url": "https://h/sse"}, "sse"),
        ({"url": "https://h/a/sse/?b"}, "sse"),
        ({"url": "https://h/sse/mcp"}, "http"),
        ({"url": "https://h/assets-sse.html"}, "http"),
        ({"url": "https://h/sse", "type": "http"}, "http"),
    ],
)
def test_a_transport_is_inferred(entry: dict[str, object], transport: str) -> None:
    assert only(entry).transport == transport


def test_a_number_of_tries_may_be_null_for_no_end() -> None:
    assert only({"command": "x", "restart": {"max_attempts": None}}).restart.max_attempts is None


def test_what_is_given_of_a_retry_leaves_the_rest_as_it_is_for_that_kind() -> None:
    server = only({"url": "http://h", "reconnect": {"base_delay_ms": 50}})
    assert server.reconnect == Reconnect(base_delay_ms=50)
    assert server.reconnect.max_delay_ms == 180_000


def test_no_secret_is_shown() -> None:
    loaded = read(
        {
            "servers": [
                {
                    "name": "a",
                    "url": "https://u:s3cret@h/x?k=s3cret",
                    "headers": {"A": "s3cret"},
                },
                {
                    "name": "b",
                    "command": "x",
                    "args": ["--token", "s3cret"],
                    "env": {"A": "s3cret"},
                },
            ],
            "http": {"tokens": {"ada": "s3cret"}},
        }
    )
    assert "s3cret" not in f"{loaded!r} {loaded.config}"
    assert [server.target for server in loaded.config.servers] == [
        "https://h/x?k=***",
        "x --token ***",
    ]


def test_every_setting_is_explained() -> None:
    for cls in (Server, Retry, Reconnect, Limits, Health, Http, Policy, AllowedProgram):
        for a in attrs.fields(cls):
            assert a.metadata["doc"].endswith(".")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"allowed_tools": ["a"] * 1001}, "allowed_tools: too many: 1001, at most 1000"),
        ({"allowed_tools": ["a" * 201]}, "allowed_tools[0]: too long: 201 characters, at most 200"),
        ({"allowed_tools": ["a*"] * 101}, "allowed_tools: too many globs: 101, at most 100"),
        ({"args": ["a"] * 1001}, "args: too many: 1001, at most 1000"),
        ({"args": ["a" * 131_073]}, "args[0]: too long: 131073 characters, at most 131072"),
        ({"args": ["a" * 100_000] * 3}, "too long: 300000 characters in all, at most 262144"),
        ({"env": {"A": "a" * 131_073}}, "env.A: too long: 131073 characters, at most 131072"),
        ({"command": "a" * 4097}, "command: too long: 4097 characters, at most 4096"),
        ({"cwd": "/" * 4097}, "cwd: too long: 4097 characters, at most 4096"),
        ({"name": "a" * 1001}, "name: too long: 1001 characters, at most 1000"),
    ],
)
def test_a_server_has_an_end(given: dict[str, object], said: str) -> None:
    with pytest.raises(Invalid) as caught:
        structure({"name": "x", "command": "y", **given}, Server)
    assert [str(problem) for problem in caught.value.problems] == [said]


def test_what_a_server_is_shown_as_is_made_once() -> None:
    server = Server("x", command="y", args=("--key", "z"))
    assert server.target == "y --key ***"
    assert server.target is server.target
    assert attrs.evolve(server, args=()).target == "y"
    assert server == Server("x", command="y", args=("--key", "z"))


def test_traces_need_what_sends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    read({"telemetry": {"traces": True, "metrics": True}})
    monkeypatch.setattr(settings, "EXPORTERS", ("opentelemetry.no.such.thing",))
    read({"telemetry": {"endpoint": "http://127.0.0.1:4318"}})
    (line,) = said({"telemetry": {"metrics": True}})
    assert line.startswith("telemetry.metrics: needs packages that are not here: pip install")
