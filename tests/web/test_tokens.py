from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from emceepee_trio.config import Http
from emceepee_trio.web.token_file import BadToken, state_directory
from emceepee_trio.web.tokens import Credentials, find

NOTHING = Http()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def minted(state: Path) -> Credentials:
    return find(NOTHING, None, state, {})


def test_a_token_is_made_once_and_kept_for_its_user_alone(tmp_path: Path) -> None:
    state = tmp_path / "deep" / "state"
    first, second = minted(state), minted(state)
    assert first.minted is not None
    assert len(first.minted) >= 43  # 256 bits
    assert first.tokens.holder(first.minted) == second.tokens.holder(first.minted) == "token"
    assert second.minted is None
    assert first.where == second.where == str(state / "token")
    assert (mode(state), mode(state / "token")) == (0o700, 0o600)
    assert [path.name for path in state.iterdir()] == ["token"]


def test_each_daemon_makes_another_one(tmp_path: Path) -> None:
    assert minted(tmp_path / "a").minted != minted(tmp_path / "b").minted


def test_daemons_that_start_at_once_agree(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(minted, [tmp_path] * 32))
    (made,) = [credentials.minted for credentials in found if credentials.minted is not None]
    assert all(credentials.tokens.holder(made) == "token" for credentials in found)


def test_a_file_goes_before_the_environment_which_goes_before_our_own(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("  from-file\n")
    environ = {"EMCEEPEE_TOKEN": "from-env"}
    credentials = find(NOTHING, file, tmp_path, environ)
    assert credentials.tokens.holder("from-file") == "token"
    assert credentials.tokens.holder("from-env") is None
    assert credentials.where == str(file)
    credentials = find(NOTHING, None, tmp_path, environ)
    assert credentials.tokens.holder("from-env") == "token"
    assert "EMCEEPEE_TOKEN" in credentials.where
    assert "from-env" not in credentials.where
    assert not (tmp_path / "token").exists()


def test_configured_tokens_count_as_well_and_then_none_is_made(tmp_path: Path) -> None:
    http = Http(tokens={"ada": "a", "bob": "b"})
    credentials = find(http, None, tmp_path, {})
    assert [credentials.tokens.holder(token) for token in "abc"] == ["ada", "bob", None]
    assert list(tmp_path.iterdir()) == []
    both = find(http, None, tmp_path, {"EMCEEPEE_TOKEN": "c"}).tokens
    assert [both.holder(token) for token in "abc"] == ["ada", "bob", "token"]


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"umlaut-\xc3\xa4", b"x" * 5000])
def test_a_file_without_a_token_is_told(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(BadToken, match="holds no token") as caught:
        find(NOTHING, file, tmp_path, {})
    assert str(file) in str(caught.value)
    assert "words" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadToken, match="No such file"):
        find(NOTHING, tmp_path / "secret", tmp_path, {})


def test_a_state_directory_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadToken, match="cannot keep a token"):
        minted(tmp_path / "file" / "state")


def test_a_token_that_others_can_read_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "secret"
    file.write_text("t0ken")
    file.chmod(0o600)
    find(NOTHING, file, tmp_path, {})
    assert caplog.messages == []
    file.chmod(0o644)
    find(NOTHING, file, tmp_path, {})
    assert caplog.messages == ["token_file_readable_by_others"]


def test_where_state_is_kept() -> None:
    assert state_directory({"STATE_DIRECTORY": "/var/lib/a:/var/lib/b"}) == Path("/var/lib/a")
    assert state_directory({"XDG_STATE_HOME": "/s"}) == Path("/s/emceepee")
    assert state_directory({}) == Path.home() / ".local" / "state" / "emceepee"
