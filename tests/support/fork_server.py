"""Forks programs that have imported all they need; and is the process that such a fork stands for.

``fork_server.py --serve FD`` is the server, ``fork_server.py NAME MODULE ...`` has it run a module
and is that module for everybody else. Only standard modules, and few: this is at every start.
"""

from __future__ import annotations

import atexit
import gc
import io
import marshal
import os
import selectors
import signal
import socket
import sys
from importlib import import_module

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
LOST = 70
"""Exit code if the fork server has vanished."""

PROGRAMS = {"emceepee_trio.cli": "main", "emceepee_trio.demo_backend": "run"}
"""What can be asked for, and the function that is it."""
LATER = (
    "anyio._backends._trio",
    "emceepee_trio.bridge.serve",
    "emceepee_trio.commands.call",
    "emceepee_trio.commands.check",
    "emceepee_trio.commands.serve",
    "emceepee_trio.commands.status",
    "emceepee_trio.commands.stdio",
    "emceepee_trio.commands.tools",
    "emceepee_trio.commands.under_way.answer",
    "emceepee_trio.commands.under_way.tasks",
    "emceepee_trio.daemon",
    "emceepee_trio.front.pipes.stdio",
    "emceepee_trio.serving.listen",
)
"""What they import when they know what they are to do."""

Wanted = tuple[str, str, list[str], dict[str, str], str, int, bool]
"""Our name, a program, its arguments, environment, folder and umask, and whether SIGINT reaches
it."""


def _start(name: str, module: str, arguments: list[str]) -> int:
    """Have *module* run with our pipes, and be it for everybody else; the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    wanted: Wanted = (
        name,
        module,
        arguments,
        dict(os.environ),
        os.getcwd(),  # noqa: PTH109 - pathlib takes longer to import than the rest
        os.umask(0),
        signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
    )
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(f"\0{name}")
        asked = marshal.dumps(wanted)
        socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(asked)
        os.closerange(0, 3)
        pid = _number(server)
        if pid is None:
            return LOST
        for each in FORWARDED:
            signal.signal(each, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        code = _number(server)
    if code is None:
        return LOST
    if code < 0:
        signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    return code


def _number(sent: socket.socket) -> int | None:
    said = _exactly(sent, 4)
    return int.from_bytes(said, "big", signed=True) if len(said) == 4 else None


def _tell(asker: socket.socket, number: int) -> None:
    try:
        asker.sendall(number.to_bytes(4, "big", signed=True))
    except OSError:
        pass  # it is gone, which is seen soon


def _exactly(sent: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count and (chunk := sent.recv(count - len(read))):
        read += chunk
    return read


class _Server:
    """Forks for whoever connects, until its own stdin ends. Has no thread, and starts none."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.ready = selectors.DefaultSelector()
        self.ready.register(listener, selectors.EVENT_READ)
        self.ready.register(0, selectors.EVENT_READ)
        self.forks: dict[int, tuple[int, socket.socket]] = {}
        """By its pidfd: a fork, and who asked for it."""
        self.left: set[int] = set()
        """Forks that are killed already, because who asked for them is gone."""

    def run(self) -> Wanted | None:
        """In a fork, what it is to be; None at the end."""
        while True:
            for key, _ in self.ready.select():
                if key.fileobj is self.listener:
                    if (wanted := self.fork()) is not None:
                        return wanted
                elif key.fd == 0:
                    for pid, _ in self.forks.values():
                        os.kill(pid, signal.SIGKILL)
                    return None
                elif key.fd in self.forks:
                    self.reap(key.fd)
                elif key.fd in self.ready.get_map():
                    self.ready.unregister(key.fd)
                    os.kill(key.data, signal.SIGKILL)
                    self.left.add(key.data)

    def reap(self, pidfd: int) -> None:
        pid, asker = self.forks.pop(pidfd)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.ready.unregister(pidfd)
        os.close(pidfd)
        if pid in self.left:
            self.left.remove(pid)
        else:
            self.ready.unregister(asker)
            _tell(asker, code)
        asker.close()

    def fork(self) -> Wanted | None:
        asker, _ = self.listener.accept()
        size, pipes, _, _ = socket.recv_fds(asker, 4, 3)
        asked = _exactly(asker, int.from_bytes(size, "big"))
        if len(pipes) < 3 or not asked:  # it was killed meanwhile
            for pipe in pipes:
                os.close(pipe)
            asker.close()
            return None
        _warm_up()
        pid = os.fork()
        if pid == 0:
            for number, pipe in enumerate(pipes):
                os.dup2(pipe, number)
                os.close(pipe)
            for pidfd, (_, other) in self.forks.items():
                os.close(pidfd)
                other.close()
            asker.close()
            self.ready.close()
            self.listener.close()
            wanted: Wanted = marshal.loads(asked)
            return wanted
        for pipe in pipes:
            os.close(pipe)
        _tell(asker, pid)
        pidfd = os.pidfd_open(pid)
        self.forks[pidfd] = pid, asker
        self.ready.register(pidfd, selectors.EVENT_READ)
        self.ready.register(asker, selectors.EVENT_READ, pid)
        return None


def _warm_up() -> None:
    """Import what takes long: the first who asks waits for it, and if nobody does, nobody."""
    if PROGRAMS.keys() <= sys.modules.keys():
        return
    for module in (*PROGRAMS, *LATER):
        import_module(module)
    gc.freeze()


def _become(wanted: Wanted) -> int:
    """What the fork would be, had it been started: as far as anybody has asked so far."""
    name, module, arguments, environment, folder, umask, can_be_interrupted = wanted
    os.setsid()
    os.umask(umask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    import_module("random").seed()  # not the numbers of every other fork
    signal.signal(
        signal.SIGINT, signal.default_int_handler if can_be_interrupted else signal.SIG_IGN
    )
    sys.argv = [module, *arguments]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8")
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w")), "utf-8", line_buffering=os.isatty(1)
    )
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w")), "utf-8", "backslashreplace", line_buffering=True
    )
    for stream in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{stream}__", getattr(sys, stream))
    configuration = import_module("emceepee_trio.commands.common.configuration")
    demo = configuration.demo_server()
    args = "-I", "-S", __file__, name, "emceepee_trio.demo_backend"
    # That of --demo starts like those of a test's own configuration.
    vars(configuration)["demo_server"] = lambda: import_module("attrs").evolve(demo, args=args)
    imported = {*sys.modules}
    try:
        code: int | None = getattr(sys.modules[module], PROGRAMS[module])()
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        return ended.code
    finally:
        if (file := environment.get("TESTS_IMPORTED")) is not None:
            with open(file, "w") as late:  # noqa: PTH123 - without pathlib, see above
                late.write("\n".join({*sys.modules} - imported))
    return code or 0


def _leave(code: int) -> None:
    """End like any program, but for taking apart all that was imported, which takes the longest.

    What nobody has closed is still complained of: of all that was there before the fork, nothing is
    looked at.
    """
    atexit._run_exitfuncs()
    gc.collect()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        sys.exit(code)  # the interpreter knows what to say of it
    os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        found = _Server(socket.socket(fileno=int(sys.argv[2]))).run()
        if found is not None:
            _leave(_become(found))
        sys.exit(0)
    os._exit(_start(sys.argv[1], sys.argv[2], sys.argv[3:]))
