"""Clients that `emceepee connect` has told of us, with servers that they had before `import`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from emceepee_lines import run
from outside import Npm
from scripted_model import Json, Model, scripted

DEMO: Json = {"command": sys.executable, "args": ["-m", "emceepee_trio.demo_backend"]}


def claude_code(npm: Npm, home: Path, model: Model) -> Callable[[], object]:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"old": DEMO}}), "utf-8")
    script = npm.folder / "node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs"
    return lambda: npm.run(
        [npm.node, str(script), "-p", "hello", "--allowedTools", "mcp__emceepee"],
        HOME=str(home),
        ANTHROPIC_BASE_URL=model.url,
        ANTHROPIC_API_KEY="none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        # Whatever is not to be there from the start is looked for.
        ENABLE_TOOL_SEARCH="true",
    )


def codex(npm: Npm, home: Path, model: Model) -> Callable[[], object]:
    (home / ".codex").mkdir()
    words = ", ".join(map(json.dumps, DEMO["args"]))
    (home / ".codex/config.toml").write_text(
        'model = "scripted" # of nobody\nmodel_provider = "scripted"\napproval_policy = "never"\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{model.url}/v1"\n'
        'wire_api = "responses"\n'
        f"[mcp_servers.old]\ncommand = {json.dumps(DEMO['command'])}\nargs = [{words}]\n",
        "utf-8",
    )
    skip = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return lambda: npm.run([*npm.program("codex"), "exec", *skip, "hello"], HOME=str(home))


def gemini(npm: Npm, home: Path, model: Model) -> Callable[[], object]:
    settings: Json = {
        "mcpServers": {"old": DEMO},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"disableAutoUpdate": True},
    }
    (home / ".gemini").mkdir()
    (home / ".gemini/settings.json").write_text(json.dumps(settings), "utf-8")
    return lambda: npm.run(
        [*npm.program("gemini"), *("-m", "gemini-2.5-flash", "-p", "hello", "--yolo")],
        HOME=str(home),
        GEMINI_CLI_TRUST_WORKSPACE="true",
        GOOGLE_GEMINI_BASE_URL=model.url,
        GEMINI_API_KEY="none",
    )


CLIENTS = {
    "claude-code": (claude_code, "mcp__emceepee__"),
    "codex": (codex, "mcp__emceepee/"),
    "gemini": (gemini, "mcp_emceepee_"),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_its_own_servers_are_reached_through_us(clients: Npm, name: str, tmp_path: Path) -> None:
    prepare, prefix = CLIENTS[name]
    call = {"server": "old", "tool": "add", "args": {"a": 1, "b": 2}}
    with scripted(lambda _: (f"{prefix}execute_tool", call)) as model:
        start = prepare(clients, tmp_path, model)
        for command in ("import", "connect"):
            told = run(command, name, "--yes", HOME=str(tmp_path), PORT="1")
            assert (told.returncode, told.stderr) == (0, ""), told
        start()
    assert "3" in model.results[0]
    if name == "claude-code":
        tools = {tool["name"]: tool for tool in json.loads(model.sent)["tools"]}
        ours = tools[f"{prefix}set_timer"]  # not one that asks for it itself
        assert ours["input_schema"]["properties"]
        assert not ours.get("defer_loading")
        assert f"mcp__old__{call['tool']}" not in tools
