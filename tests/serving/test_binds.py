from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from emceepee_trio.serving.binds import (
    Bind,
    CannotListen,
    Inherited,
    Tcp,
    Unix,
    listening,
    parse_bind,
)

LOOPBACK = Tcp("127.0.0.1", 0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short one: the path of a socket has at most 107 bytes."""
    with TemporaryDirectory() as path:
        yield Path(path)


def refused(*binds: Bind, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(CannotListen) as caught, listening(binds, environ or {}):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(path)) == 0


@pytest.mark.parametrize(
    ("text", "bind"),
    [
        ("127.0.0.1:80", Tcp("127.0.0.1", 80)),
        ("127.0.0.1", Tcp("127.0.0.1", 8080)),
        ("localhost:0", Tcp("localhost", 0)),
        ("[::1]:80", Tcp("::1", 80)),
        ("[::1]", Tcp("::1", 8080)),
        ("unix:/run/x.sock", Unix(Path("/run/x.sock"))),
        ("unix:x:1", Unix(Path("x:1"))),
        ("fd://3", Inherited(3)),
    ],
)
def test_what_a_bind_means(text: str, bind: Bind) -> None:
    assert parse_bind(text, 8080) == bind


@pytest.mark.parametrize(
    "text", ["", ":80", "::1", "::1:80", "a:b", "a:65536", "a:", "unix:", "fd://"]
)
def test_what_means_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_bind(text, 8080)


def test_a_port_of_its_own_is_reported() -> None:
    with listening([LOOPBACK, LOOPBACK]) as (one, two):
        assert {str(one), str(two)} == {
            f"127.0.0.1:{bound.socket.getsockname()[1]}" for bound in (one, two)
        }
        assert str(one) != str(two)
        assert one.url == f"http://{one}"


def test_a_taken_port_is_told_and_nothing_is_kept() -> None:
    with listening([LOOPBACK]) as (taken,):
        port = taken.socket.getsockname()[1]
        said = refused(LOOPBACK, Tcp("127.0.0.1", port))
    assert said == f"cannot listen on 127.0.0.1:{port}: Address already in use"
    with listening([Tcp("127.0.0.1", port)]):
        pass


def test_all_addresses_of_a_name_have_the_same_port() -> None:
    with listening([Tcp("localhost", 0)]) as sockets:
        assert len({bound.socket.getsockname()[1] for bound in sockets}) == 1
        assert all(bound.is_local and bound.names == ("localhost",) for bound in sockets)


@pytest.mark.parametrize("port", [0, 50_000])
@pytest.mark.parametrize("host", ["a..b", "x" * 70, "192.0.2.1"])
def test_a_host_that_is_not_here_is_told(host: str, port: int) -> None:
    assert refused(Tcp(host, port)).startswith(f"cannot listen on {host}:{port}: ")


def test_only_loopback_is_local() -> None:
    with listening([Tcp("0.0.0.0", 0), LOOPBACK]) as (everywhere, here):
        assert not everywhere.is_local
        assert here.is_local
        assert everywhere.url == f"http://127.0.0.1:{everywhere.socket.getsockname()[1]}"


def test_a_unix_socket_is_for_its_user_alone_and_goes(folder: Path) -> None:
    path = folder / "s"
    before = os.umask(0)
    try:
        with listening([Unix(path)]) as (bound,):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert (str(bound), bound.url, bound.is_local) == (f"unix:{path}", None, True)
            assert connects(path)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_unix_socket_that_somebody_listens_on_is_left_alone(folder: Path) -> None:
    path = folder / "s"
    with listening([Unix(path)]):
        assert refused(Unix(path)) == f"cannot listen on unix:{path}: somebody else does"
        assert connects(path)


def test_so_is_one_whose_backlog_is_full(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as theirs, socket.socket(socket.AF_UNIX) as waiting:
        theirs.bind(str(path))
        theirs.listen(0)
        waiting.connect(str(path))
        assert "somebody else" in refused(Unix(path))


def test_and_one_of_another_kind(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as theirs:
        theirs.bind(str(path))
        assert "somebody else" in refused(Unix(path))


def test_a_unix_socket_that_nobody_listens_on_is_replaced(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(path))
    with listening([Unix(path)]):
        assert connects(path)


def test_a_file_is_never_replaced(folder: Path) -> None:
    path = folder / "s"
    path.write_text("precious")
    assert "no socket" in refused(Unix(path))
    link = folder / "link"
    link.symlink_to(path)
    assert "no socket" in refused(Unix(link))
    assert path.read_text() == "precious"


def test_a_socket_that_has_become_somebody_elses_is_left_to_them(folder: Path) -> None:
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as theirs:
        with listening([Unix(path)]):
            path.unlink()
            theirs.bind(str(path))
        assert path.exists()


def test_a_path_that_cannot_be_is_told(folder: Path) -> None:
    assert "No such file" in refused(Unix(folder / "missing" / "s"))
    assert "too long" in refused(Unix(folder / ("x" * 120)))


def test_an_inherited_socket_is_served_and_not_handed_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        os.set_inheritable(given.fileno(), True)
        fd = os.dup(given.fileno())
        os.set_inheritable(fd, True)
        with listening([Inherited(fd)], {"LISTEN_PID": str(os.getpid())}) as (bound,):
            assert bound.socket.getsockname() == given.getsockname()
            assert not os.get_inheritable(fd)
        with pytest.raises(OSError, match="Bad file"):
            os.fstat(fd)


def test_an_abstract_socket_can_be_inherited() -> None:
    with socket.socket(socket.AF_UNIX) as given:
        given.bind("\0emceepee-test")
        given.listen()
        with listening([Inherited(given.detach())], {}) as (bound,):
            assert str(bound) == "unix:@emceepee-test"


def test_a_socket_meant_for_another_process_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        said = refused(Inherited(given.fileno()), environ={"LISTEN_PID": "1"})
        assert "another process" in said


def test_what_is_no_listening_socket_is_refused_and_stays_open(folder: Path) -> None:
    with (folder / "f").open("w") as file, socket.socket() as unbound:
        for fd in (file.fileno(), unbound.fileno(), 9999):
            assert refused(Inherited(fd)).startswith(f"cannot listen on fd://{fd}: it is no ")
        file.write("still open")
        assert unbound.fileno() >= 0
        unbound.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE)
