"""The command line in a home of its own, in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from emceepee_trio import logs
from emceepee_trio.cli import main
from homes import HomeShape

STRANGERS = (
    *("XDG_CONFIG_HOME", "FLATPAK_XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"),
    *("COPILOT_HOME", "GEMINI_CLI_HOME", "VSCODE_PORTABLE", "VSCODE_APPDATA", "CLINE_DIR"),
    *("CLINE_DATA_DIR", "CLINE_MCP_SETTINGS_PATH", "EMCEEPEE_TOKEN", "TICKETS_TOKEN"),
)
"""What moves files of clients, or stands for a secret."""

NOBODY = "1"
"""A port on which no daemon listens."""


@attrs.frozen
class Ran:
    status: int
    out: str
    err: str


@attrs.frozen
class AtHome:
    home: Path
    state: Path
    _capture: pytest.CaptureFixture[str]
    _patch: pytest.MonkeyPatch

    @classmethod
    def of(
        cls, tmp_path: Path, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> AtHome:
        home, state = tmp_path / "home", tmp_path / "state"
        home.mkdir()
        for name in STRANGERS:
            patch.delenv(name, raising=False)
        # The log of this process is that of all other tests in it.
        patch.setattr(logs, "configure", lambda *_, **__: None)
        at_home = cls(home, state, capture, patch)
        at_home.set({"HOME": str(home), "PORT": NOBODY, "XDG_STATE_HOME": str(state)})
        return at_home

    def set(self, variables: Mapping[str, str]) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, value)

    def make(self, shape: HomeShape) -> None:
        shape.make(self.home)
        self.set(shape.variables(self.home))

    def run(self, *words: str) -> Ran:
        try:
            status = main(words)
        except SystemExit as ended:
            status = int(ended.code or 0)
        told = self._capture.readouterr()
        return Ran(status, told.out, told.err)

    @property
    def config(self) -> Path:
        return Path(os.environ.get("XDG_CONFIG_HOME") or self.home / ".config") / (
            "emceepee/config.json"
        )


__all__ = ["AtHome", "Ran"]
