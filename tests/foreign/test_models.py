"""Clients with a model: what reaches the model is looked at, not what was sent to its client."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from outside import Npm
from scripted_model import Json, Model, Step, scripted

ARGS = ["-m", "emceepee_trio", "stdio", "--demo"]


def entry(home: Path, *more: str) -> Json:
    """Ours, with the configuration that is there, if there is one."""
    config = home / "emceepee.json"
    args = [*ARGS, "--config", str(config)] if config.exists() else ARGS
    return {"command": sys.executable, "args": [*args, *more]}


def claude_code(npm: Npm, home: Path, model: Model, *more: str) -> None:
    """It has `ANTHROPIC_BASE_URL` for those with a proxy of their own."""
    servers = home / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"emceepee": entry(home, *more)}}), "utf-8")
    npm.run(
        [
            # What its own script of installation would put in the place of this is not run.
            *(npm.node, str(npm.folder / "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs")),
            *("-p", "hello", "--mcp-config", str(servers), "--strict-mcp-config"),
            *("--allowedTools", "mcp__emceepee"),
        ],
        HOME=str(home),
        ANTHROPIC_BASE_URL=model.url,
        ANTHROPIC_API_KEY="none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )


def codex(npm: Npm, home: Path, model: Model, *more: str) -> None:
    ours = entry(home, "--state-dir", str(home), *more)
    words = ", ".join(map(json.dumps, ours["args"]))
    (home / "config.toml").write_text(
        'model = "scripted"\nmodel_provider = "scripted"\napproval_policy = "never"\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model.url}/v1"\n'
        'wire_api = "responses"\n'
        f"[mcp_servers.emceepee]\ncommand = {json.dumps(ours['command'])}\nargs = [{words}]\n"
        "required = true\n",
        "utf-8",
    )
    npm.run(
        [
            *npm.program("codex"),
            *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            "hello",
        ],
        CODEX_HOME=str(home),
    )


def gemini(npm: Npm, home: Path, model: Model, *more: str) -> None:
    settings: Json = {
        "mcpServers": {"emceepee": entry(home, *more) | {"trust": True}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), "utf-8")
    npm.run(
        # A model that is named is not chosen by asking another one.
        [*npm.program("gemini"), *("-m", "gemini-2.5-flash", "-p", "hello", "--yolo")],
        HOME=str(home),
        GEMINI_CLI_TRUST_WORKSPACE="true",
        GOOGLE_GEMINI_BASE_URL=model.url,
        GEMINI_API_KEY="none",
    )


@attrs.frozen
class Kind:
    """A client, and what it puts before the names of our tools."""

    run: Callable[..., None]
    """With an npm, a home, a model, and more arguments of ours."""
    prefix: str

    def script(self, *steps: Step) -> list[Step]:
        return list(map(self._named, steps))

    def _named(self, step: Step) -> Step:
        def named(results: list[str]) -> tuple[str, Json]:
            name, arguments = step(results)
            return self.prefix + name, arguments

        return named


KINDS = {
    "claude-code": Kind(claude_code, "mcp__emceepee__"),
    "codex": Kind(codex, "mcp__emceepee/"),
    "gemini-cli": Kind(gemini, "mcp_emceepee_"),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def calls(name: str, /, **arguments: Any) -> Step:
    return lambda _: (name, arguments)


def demo(tool: str, **args: Any) -> Step:
    return calls("execute_tool", server="demo", tool=tool, args=args)


def found(pattern: str, results: list[str]) -> str:
    """The last that was said of that kind."""
    *_, last = re.findall(pattern, "\n".join(results).replace("\\", ""))
    return str(last)


def test_what_happens_is_told_beside_a_structured_answer(
    clients: Npm, kind: Kind, tmp_path: Path
) -> None:
    steps = kind.script(
        demo("add", a=1, b=2),  # waits until its server is there
        calls("set_timer", duration_ms=100, message="the bell"),
        demo("add", a=20, b=22),
        demo("add", a=30, b=33),
        demo("add", a=40, b=44),
        calls("await_activity", timeout_ms=5000),
        calls("list_timers"),
    )
    with scripted(*steps) as model:
        kind.run(clients, tmp_path, model)
    first, timer, *sums, last, _ = model.results
    assert "3" in first
    assert "timer_id" in timer
    assert [total in said for total, said in zip(("42", "63", "84"), sums, strict=True)] == [
        True
    ] * 3
    # By the wait, if it had to: that names it twice, as what it has found and as why it ended.
    assert ["timer_expired" in said for said in (*sums, last)].count(True) == 1


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_client_with_a_dialog_of_its_own_is_asked(
    clients: Npm, name: str, tmp_path: Path
) -> None:
    """Without a person before it, it refuses at once."""
    with scripted(*KINDS[name].script(demo("ask_name"))) as model:
        KINDS[name].run(clients, tmp_path, model)
    assert re.search("You (declined|cancelled)", model.results[0])
    assert "Promoted" not in model.results[0]


def test_natively_a_model_sees_and_calls_the_tools_of_servers(
    clients: Npm, kind: Kind, tmp_path: Path
) -> None:
    """And what one of them asks comes to the client itself, where it has a dialog."""
    steps = kind.script(
        calls("demo__add", a=1, b=2),
        calls("list_servers"),
        calls("demo__ask_name"),
    )
    with scripted(*steps) as model:
        kind.run(clients, tmp_path, model, "--view", "native")
    added, listed, asked = model.results
    assert "3" in added
    assert "demo" in listed
    # One that it has not called; some clients tell names alone, until a tool is wanted.
    assert "demo__slow" in model.sent
    assert "call_read" not in model.sent
    if kind is KINDS["gemini-cli"]:
        assert "answer with respond_to_elicitation" in asked
    else:
        assert re.search("You (declined|cancelled)", asked)


def test_a_question_is_seen_answered_and_its_result_fetched(
    clients: Npm, kind: Kind, tmp_path: Path
) -> None:
    only_tools = {"mcpServers": {}, "relay": {"elicitation": "tools"}}
    (tmp_path / "emceepee.json").write_text(json.dumps(only_tools), "utf-8")
    steps = kind.script(
        demo("ask_name"),
        lambda results: (
            "respond_to_elicitation",
            {
                "request_id": found(r'"(?:request_id|requestId)": ?"([^"]+)"', results),
                "action": "accept",
                "content": {"name": "Ada"},
            },
        ),
        lambda results: ("get_task_result", {"task_id": found(r'"task_id": ?"([^"]+)"', results)}),
    )
    with scripted(*steps) as model:
        kind.run(clients, tmp_path, model)
    promoted, answered, result = model.results
    assert "respond_to_elicitation" in promoted
    assert "error" not in answered
    assert "Ada" in result
