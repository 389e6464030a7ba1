"""What commands ask a session, be it one of their own or one on a running daemon; in shell's words.

Whoever asks a daemon needs no event loop: a coroutine of ours that asks one never waits for any.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol, TypeVar

import attrs

from ... import logs
from ...config import Config, default_path
from ...model.json.problems import did_you_mean
from .configuration import read_config
from .options import Usage, add_config_options, add_log_options, add_state_option
from .output import complain
from .remote import NoAnswer, RemoteDaemon, RemoteSession

T = TypeVar("T")

CONTEXT = ("open_questions", "pending_client_action", "events_since_last_response")
"""Blocks that are for a model, the last one first."""

WAITING = {"idle", "not_connected"}
"""States of servers that wait for somebody who needs them."""

SETTLE_MS = 1000
"""How long we wait at once for what a daemon's servers become."""


PAUSE = 0.5
"""Seconds between two looks at logs."""


class Unavailable(Exception):
    """What was asked for is not to be had; says why, in one line."""


class Asked(Protocol):
    """A session."""

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one of our own tools."""
        ...

    async def settled(self, server: str | None) -> None:
        """Wait until the server, or each of them, is connected or is known not to be."""
        ...

    async def pause(self) -> None:
        """Wait for a moment, before we look again for what nobody tells."""
        ...

    async def beside(self, work: Callable[[], T]) -> T:
        """What comes of *work*, which waits for a person; the session goes on meanwhile."""
        ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_options(parser)
    parser.add_argument(
        "--url", metavar="U", help="ask the daemon at http://HOST:PORT or unix:PATH instead"
    )
    add_state_option(parser)
    add_log_options(parser, style="text")
    parser.set_defaults(log_level="error")


def in_session(
    options: argparse.Namespace,
    ask: Callable[[Asked], Coroutine[Any, Any, T]],
    server: str | None = None,
) -> T:
    """What comes of *ask*, in a session that ends with it.

    Only *server* is started, if it is named.

    Raises:
        Refused: it cannot be asked.
    """
    logs.configure(options.log_format, options.log_level, alone=True)
    if options.url is None:
        config = read_config(options)
        import trio

        return trio.run(_in_own, _only(config, server), ask)
    check_alone(options)
    try:
        daemon = RemoteDaemon.find(options.url, options.state_dir)
        who = f"emceepee {options.command}"
        on_demand = server is not None
        with _ends_when_told(), RemoteSession.connected(daemon, who, on_demand=on_demand) as client:
            return _at_once(ask(_Remote(client)))
    except NoAnswer as error:
        raise Unavailable(str(error)) from None


@contextmanager
def _ends_when_told() -> Iterator[None]:
    """As by Ctrl-C, whoever closes the terminal: the daemon would keep what we leave behind."""

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    numbers = [signal.SIGTERM, signal.SIGHUP]
    usual = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, signal.SIG_DFL)


def check_alone(options: argparse.Namespace) -> None:
    """Who asks a daemon has no say in its servers."""
    if options.config is not None or options.demo:
        raise Usage("--url: the daemon has servers of its own; leave --config and --demo out")


def _only(config: Config, server: str | None) -> Config:
    if server is None:
        return config
    names = [each.name for each in config.servers]
    if server not in names:
        raise Unavailable(no_server(server, names))
    return attrs.evolve(config, servers=tuple(s for s in config.servers if s.name == server))


def no_server(name: str, names: Iterable[str]) -> str:
    known = sorted(names)
    there = f"there are: {', '.join(known)}" if known else "there are none; see --config and --demo"
    return f"no server {name!r}{did_you_mean(name, known) or ';'} {there}"


async def _in_own(config: Config, ask: Callable[[Asked], Awaitable[T]]) -> T:
    from .own import open_own

    refused: Unavailable | None = None
    async with open_own(config) as own:
        try:
            return await ask(own)
        except Unavailable as why:
            refused = why  # alone, and not in the groups of the nurseries in there
    assert refused is not None
    raise refused


def _at_once(steps: Coroutine[Any, Any, T]) -> T:
    try:
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("there is nothing to wait for")


@attrs.frozen
class _Remote:
    _client: RemoteSession

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        result = self._client.call(tool, arguments)
        content = result.get("content")
        for key in CONTEXT:
            if isinstance(content, list) and content and key in json_of(content[-1]):
                content = content[:-1]
        return result if content is result.get("content") else {**result, "content": content}

    async def settled(self, server: str | None) -> None:
        while True:
            said = answer(await self.call("list_servers", {}))
            states = {s["name"]: s["status"] for s in said["servers"]}
            if server is not None and states.get(server) in WAITING:
                await self.call("reconnect_server", {"name": server})
            elif "connecting" in (states.values() if server is None else [states.get(server)]):
                await self.call("await_activity", {"timeout_ms": SETTLE_MS})
            else:
                return

    async def pause(self) -> None:
        time.sleep(PAUSE)  # noqa: ASYNC251 - nothing else is here that could go on

    async def beside(self, work: Callable[[], T]) -> T:
        return work()


def json_of(block: Any) -> dict[str, Any]:
    """The object in a block of text, or an empty one."""
    try:
        said = json.loads(block["text"])
    except (TypeError, KeyError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def error_of(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """The error in a result that is one of ours, and not a server's."""
    content = result.get("content")
    if not result.get("isError") or not isinstance(content, list) or len(content) != 1:
        return None
    error = json_of(content[0]).get("error")
    is_ours = isinstance(error, dict) and str(error.get("code")).startswith("TOOL_ERR_")
    return error if is_ours else None


def answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """What one of our own tools says.

    Raises:
        Refused: an error.
    """
    if (error := error_of(result)) is not None:
        raise Unavailable(in_words(error))
    content = result.get("content")
    return json_of(content[0]) if isinstance(content, list) and content else {}


_FOR_MODELS = re.compile(
    r"\b(list|get|add|remove|reconnect|await|respond|execute|set|cancel)_[a-z_]+"
)
_KNOWN = re.compile(r"^no server '(.*)'; there are: ([^.;]*)")


def in_words(error: Mapping[str, Any]) -> str:
    """An error of ours without its advice to models, who have tools for what shells have us for."""
    message = str(error.get("message"))
    if found := _KNOWN.match(message):
        return no_server(found[1], set(found[2].split(", ")) - {"emceepee", "none"})
    clauses = re.split(r"(; |\. |, which )", message)
    kept = [clauses[0]]
    for joint, clause in zip(clauses[1::2], clauses[2::2], strict=True):
        if not _FOR_MODELS.search(clause):
            kept += [joint, clause]
    return "".join(kept)


async def tools_of(asked: Asked, **which: str) -> tuple[dict[str, list[Any]], list[Any]]:
    """The tools of each server that *which* finds, as list_tools does, and what others lack."""
    found: dict[str, list[Any]] = {}
    errors: dict[str, Any] = {}
    cursor: dict[str, str] = {}
    while True:
        said = answer(await asked.call("list_tools", which | cursor))
        for each in said.get("tools", ()):
            found.setdefault(each["server"], []).extend(each["tools"])
        errors |= {each["server"]: each["error"] for each in said.get("errors", ())}
        if not said.get("cursor"):
            return found, list(errors.items())
        cursor = {"cursor": said["cursor"]}


def tell_where_servers_are(
    options: argparse.Namespace, what: str = "none is configured in"
) -> None:
    """For whoever has found none, or nothing of them."""
    if options.url is None and not options.demo:
        where = options.config or default_path()
        complain(
            f"emceepee {options.command}: {what} {where}; --demo has one to try, "
            "and --url asks a daemon that runs"
        )


def refused(options: argparse.Namespace, why: Unavailable) -> int:
    complain(f"emceepee {options.command}: {why}")
    return 1
