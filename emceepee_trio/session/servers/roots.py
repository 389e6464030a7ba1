"""Which folders each server of a session is told to keep to.

What the configuration says is the operator's; a client may choose less, and more only if
``policy.roots`` is ``allow``. Knows no backend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from ...config import Config
from ...config.bounds import MAX_NAME, MAX_ROOTS, MAX_ROOTS_BYTES, MAX_URI
from ...config.roots import Folder, as_roots, within
from ...errors import Denied


@attrs.frozen
class Choice:
    """What a client has chosen, and what comes of it: for servers of which nothing is configured,
    and, by those, for servers that have some of their own."""

    general: tuple[Folder, ...]
    of_own: Mapping[tuple[Folder, ...], tuple[Folder, ...]]


@attrs.define(eq=False)
class ToldRoots:
    config: Config
    _own: Callable[[], Mapping[str, tuple[Folder, ...]]]
    """Those of servers that have some of their own."""
    _choice: Choice | None = attrs.field(default=None, init=False)
    _is_by_tool: bool = attrs.field(default=False, init=False)

    @property
    def is_by_tool(self) -> bool:
        """They have been chosen by tool, so what a client says of itself changes nothing."""
        return self._is_by_tool

    @property
    def _configured(self) -> tuple[Folder, ...]:
        return as_roots(self.config.roots or ())

    def of(self, server: str | None = None) -> list[dict[str, Any]]:
        """What that *server* is told, or one of which nothing is configured."""
        own = self._own().get(server) if server is not None else None
        if self._choice is None:
            told = self._configured if own is None else own
        elif own is None:
            told = self._choice.general
        else:
            told = self._choice.of_own.get(own, ())  # none, of a server that has come since
        return [root.to_json() for root in told]

    def by_server(self) -> dict[str, list[dict[str, Any]]]:
        """What servers are told that have some of their own."""
        return {name: self.of(name) for name in self._own()}

    @property
    def needs_disk(self) -> bool:
        """Whether a choice is compared with what is configured, folder by folder."""
        policy = self.config.policy.roots
        if policy in {"allow", "deny"}:
            return False
        return policy == "narrow" or self.config.roots is not None or bool(self._own())

    def choice(self, roots: Sequence[Folder]) -> Callable[[], Choice]:
        """What works out what comes of it if a client chooses these. It may look at the disk.

        Raises:
            Denied: (what is returned does) some are of no server; says what is allowed.
        """
        policy = self.config.policy.roots
        configured = None if self.config.roots is None else self._configured
        own = set(self._own().values())

        def work() -> Choice:
            if policy == "deny":
                raise Denied("policy.roots is deny: roots are set by the operator alone")
            if policy == "allow":
                return Choice(tuple(roots), {each: tuple(roots) for each in own})
            general = tuple(roots)
            if policy == "narrow" or configured is not None:
                _check(roots, [*(configured or ()), *(root for each in own for root in each)])
                general = within(roots, configured or ())[0]
            return Choice(general, {each: within(roots, each)[0] for each in own})

        return work

    def choose(self, choice: Choice, *, by_client: bool = False) -> bool:
        """From now on servers are told that; False if it changes nothing.

        What is chosen by tool stays, whatever the client says of itself.
        """
        if by_client and (self._is_by_tool or choice == self._choice):
            return False
        self._is_by_tool = not by_client
        self._choice = choice
        return True


def folders_of(said: Any) -> list[Folder]:
    """What a client says of its roots.

    Raises:
        Denied: they are none, or too many.
    """
    roots = said if isinstance(said, list) else []
    folders = [
        Folder(uri, name[:MAX_NAME] if isinstance(name := root.get("name"), str) else None)
        for root in roots[: MAX_ROOTS + 1]
        if isinstance(root, Mapping)
        and isinstance(uri := root.get("uri"), str)
        and uri.startswith("file://")
        and len(uri) <= MAX_URI
    ]
    size = sum(len(folder.uri) + len(folder.name or "") for folder in folders)
    if not isinstance(said, list) or len(folders) > MAX_ROOTS or size > MAX_ROOTS_BYTES:
        raise Denied(f"expected at most {MAX_ROOTS} roots of {MAX_ROOTS_BYTES} characters")
    return folders


def _check(roots: Sequence[Folder], allowed: Sequence[Folder]) -> None:
    _, beyond = within(roots, allowed)
    if beyond:
        there = ", ".join(root.uri for root in allowed[:SHOWN]) or "none"
        raise Denied(
            f"root {beyond[0].uri!r} is not within the configured ones ({there}); roots can be "
            "narrowed only, unless the operator sets policy.roots to allow"
        )


SHOWN = 10
"""Roots that an error names."""
