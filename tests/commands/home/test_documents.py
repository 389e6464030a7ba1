"""Files as anybody may have written them: what is put there can be taken out to the byte."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.commands.home.backups import Backup, Backups, digest
from emceepee_trio.commands.home.documents import Document, Unusable
from emceepee_trio.model.json import edits
from written import written

KEYS = ("mcpServers",)
ENTRY = {"command": "/bin/emceepee", "args": ["stdio"]}


def test_an_edit_that_says_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"git": {}}}')
    monkeypatch.setattr(edits, "put", lambda *_: '{"mcpServers": {}}')
    with pytest.raises(Unusable, match="do it by hand"):
        Document.read(path).with_entries(KEYS, {"emceepee": ENTRY})


def test_a_link_that_leads_to_itself_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.symlink_to(tmp_path / "other.json")
    (tmp_path / "other.json").symlink_to(path)
    with pytest.raises(Unusable, match="mend that first"):
        Document.read(path)
    assert path.is_symlink()


def test_what_is_made_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "new/folder/mcp.json"
    document = Document.read(path)
    assert document.missing_folders() == [tmp_path / "new", tmp_path / "new/folder"]
    document.write(b"{}")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_whose_a_file_is_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("{}")
    path.chmod(0o640)
    os.chown(path, 1234, 2345)
    Document.read(path).write(b'{"a": 1}')
    about = path.stat()
    assert (about.st_uid, about.st_gid, stat.S_IMODE(about.st_mode)) == (1234, 2345, 0o640)
    assert path.read_text() == '{"a": 1}'


@given(
    text=written(is_object=True),
    bom=st.booleans(),
    crlf=st.booleans(),
    after=st.sampled_from(["", "\n", "\n\n", " // end\n"]),
)
def test_connected_twice_is_connected_once_and_undone_is_untouched(
    tmp_path_factory: pytest.TempPathFactory, text: str, bom: bool, crlf: bool, after: str
) -> None:
    folder = tmp_path_factory.mktemp("home")
    path, backups = folder / "mcp.json", Backups(folder / "kept")
    whole = ("\ufeff" if bom else "") + text + after
    before = (whole.replace("\r\n", "\n").replace("\n", "\r\n") if crlf else whole).encode()
    path.write_bytes(before)
    document = Document.read(path)
    if not isinstance(document.data.get("mcpServers", {}), dict):
        with pytest.raises(Unusable, match="is no object"):
            document.with_entries(KEYS, {"emceepee": ENTRY})
        assert path.read_bytes() == before
        return
    content = document.with_entries(KEYS, {"emceepee": ENTRY})
    backup = Backup("cursor", str(path), digest(content), digest(before))
    backups.keep(backup, before)
    document.write(content)

    connected = Document.read(path)
    assert connected.at((*KEYS, "emceepee")) == ENTRY
    assert connected.with_entries(KEYS, {"emceepee": ENTRY}) == content
    # Without the backup, too, nothing but our entry is missing.
    less = connected.without_entry(KEYS, "emceepee")
    connected.write(less)
    servers = Document.read(path).data.pop("mcpServers")
    assert "emceepee" not in servers

    found = backups.of(document)
    assert found == backup
    given_back = backups.content(found)
    assert given_back == before
