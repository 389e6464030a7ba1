"""Whatever a configuration file holds: it is read, or every line of the refusal says where and why.

Mistakes in the files that `tests/configs` keeps of every program's dialect, in the data and in the
bytes; then what comes after reading: the checks and the prints of `emceepee check`, the security.
"""

from __future__ import annotations

import argparse
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee_trio.commands import check
from emceepee_trio.config import ConfigError, load
from emceepee_trio.model.json import jsonc
from emceepee_trio.web.security import Security, Tokens
from mistakes import BYTES, MORE, Body, bodies
from reading import ENVIRON, FILES

TEXTS = [path.read_text("utf-8") for path in sorted(FILES.glob("*.json"))]
PIECES = [
    *(b"/*", b"*/", b"//", b",", b",,", b"${", b"}", b"${API_KEY}", b"${NOPE}", b"${X:-", b"~/"),
    *(b'"limits": {"body": 1},', b'"name": "emceepee",', b'"timeout": 1e999,', b'"url": "x",'),
    *BYTES,
]


def plain(value: Any) -> Any:
    """Without the memory of repeated keys, which has its own type."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@st.composite
def spliced(draw: st.DrawFn) -> bytes:
    """A file as it was written, comments and all, with a piece in it or out of it."""
    data = draw(st.sampled_from(TEXTS)).encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = start + draw(st.sampled_from([0, 0, 1, 5, 50]))
        data = data[:start] + draw(st.sampled_from([b"", *PIECES])) + data[end:]
    return Body(data)


files = bodies(st.sampled_from(TEXTS).map(lambda text: plain(jsonc.loads(text))), 4) | spliced()

WHERE = re.compile(
    r"line \d+, column \d+: .+|nested deeper than .+|nested too deeply|holds a number of .+"
    r"|\S+ is not JSON"
)
"""What is said of a file that is no JSON."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRON.items():
            patch.setenv(name, value)
        yield tmp_path_factory.mktemp("configs") / "config.json"


@MORE
@given(content=files)
def test_any_file_is_read_or_refused_with_its_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused: ConfigError | None = None
    try:
        loaded = load(path)
    except ConfigError as error:
        refused = error
    if refused is not None:
        lines = list(map(str, refused.problems))
        assert lines
        for line in lines:
            _, _, why = line.partition(f"{path}: ")
            assert not why or WHERE.fullmatch(why) or why.startswith("not UTF-8, see "), line
    else:
        lines = list(loaded.warnings)
        Security.of(loaded.config.http, Tokens.of(loaded.config.http.bearers.items()))
    for line in lines:
        assert line.isprintable(), line
        assert len(line) < 10_000
        assert "s3cret" not in line
    assert check_of(path) == (0 if refused is None else 1)


def check_of(path: Path) -> int:
    """What `emceepee check` exits with; what it prints has to be bytes in the end."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        return check.run(argparse.Namespace(file=path))
