from __future__ import annotations

from pathlib import Path

import pytest

from at_home import AtHome


@pytest.fixture
def at_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> AtHome:
    return AtHome.of(tmp_path, capsys, monkeypatch)
