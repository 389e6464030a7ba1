from __future__ import annotations

import os
from pathlib import Path

import pytest

from emceepee_trio.config import Config, ConfigError, bounds, load
from reading import ENVIRON


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1, column 1: expecting value"),
        (b'{\n  "servers": [}\n}', "line 2, column 15: expecting value"),
        (b'{"servers": [NaN]}', "NaN is not JSON"),
        (b"[" * 100_000, "nested deeper than 200 levels"),
        ('{"a": "ä"}'.encode("latin-1"), "not UTF-8, see byte 7"),
        ("{}".encode("utf-16"), "not UTF-8, see its first byte"),
    ],
)
def test_a_file_that_is_not_json_is_told_with_its_place(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"{path}: {words}"


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'\xef\xbb\xbf{"context": "off"}')
    assert load(path, ENVIRON).config == Config(context="off")


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"cannot read {path}: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, ENVIRON)
    assert str(caught.value) == f"cannot read {tmp_path}: Is a directory"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.touch(mode=0)
    with pytest.raises(ConfigError) as caught:
        load(path, ENVIRON)
    assert str(caught.value) == f"cannot read {path}: Permission denied"


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(bounds.MAX_CONFIG_BYTES + 1)
    with pytest.raises(ConfigError, match=f"longer than {bounds.MAX_CONFIG_BYTES} bytes"):
        load(path, ENVIRON)


def test_relative_paths_start_at_the_files_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/config.json").write_text('{"mcpServers": {"a": {"command": "./run"}}}')
    monkeypatch.chdir(tmp_path)
    (server,) = load(Path("sub/config.json"), {}).config.servers
    assert server.command == str(tmp_path / "sub/run")
