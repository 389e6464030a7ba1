"""Which servers there are, for whom: shared by all sessions, while connections never are.

Configured servers are everybody's. Those added by a tool belong to the principal that added them.
Knows no session; `session/manager.py` tells the sessions of a change.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...config import OUR_NAME, Config, Lacking, Server, with_defaults
from ...errors import Denied, InvalidArguments, LimitReached, ServerNotFound
from .spawning import admitted


@attrs.define(eq=False)
class Registry:
    config: Config
    _removed: set[str] = attrs.field(factory=set, init=False)
    """Configured servers that a client has removed."""
    _added: dict[str, dict[str, Server]] = attrs.field(factory=dict, init=False)
    """By principal, then by name."""
    _switched: dict[str, bool] = attrs.field(factory=dict, init=False)
    """Configured servers that somebody has disabled or enabled, and whether they are disabled."""

    def visible(self, principal: str) -> Mapping[str, Server]:
        """The servers of a principal, by name."""
        return dict(self._added.get(principal, {})) | self._configured()

    def _configured(self) -> dict[str, Server]:
        return {
            s.name: attrs.evolve(s, disabled=self._switched[s.name])
            if s.name in self._switched
            else s
            for s in self.config.servers
            if s.name not in self._removed
        }

    def principals(self) -> list[str]:
        """Who has added servers."""
        return list(self._added)

    def owners(self, name: str) -> list[str]:
        """Principals that have added a server of that name."""
        return [owner for owner, added in self._added.items() if name in added]

    def check(self, principal: str, server: Server) -> Server:
        """Whether *principal* may add *server*.

        Returns:
            The server, with what the operator says of how it is started.

        Raises:
            ToolError: it may not; says why.
        """
        server = server.with_inherited(self.config.inherit_env)
        server = with_defaults(server, self.config.defaults)
        configured = self._configured().get(server.name)
        if configured == server:
            return server  # it changes nothing
        if configured is not None:
            raise InvalidArguments(
                f"server {server.name!r} is configured; choose another name, or remove it first"
            )
        visible = self.visible(principal)
        if server.name not in visible and len(visible) >= self.config.limits.servers:
            raise LimitReached(
                f"there are {self.config.limits.servers} servers (limits.servers); remove one first"
            )
        return admitted(self.config.policy, server)

    def reload(self, config: Config) -> None:
        """Take new servers; one that a client has removed comes back if its entry is another.

        What a client has added goes if its program may not be started any more.
        """
        before = {server.name: server for server in self.config.servers}
        after = {server.name: server for server in config.servers}
        same = {name for name, server in after.items() if server == before.get(name)}
        self._removed &= same
        self._switched = {name: off for name, off in self._switched.items() if name in same}
        self.config = config
        for added in self._added.values():
            for name, server in list(added.items()):
                if not _is_admitted(config, server):
                    del added[name]
                elif server.command is not None:  # its client has no say in what it inherits
                    added[name] = attrs.evolve(server, inherit_env=config.inherit_env or None)

    def add(self, principal: str, server: Server) -> None:
        if self._configured().get(server.name) != server:
            self._added.setdefault(principal, {})[server.name] = server

    def remove(self, principal: str, name: str) -> Server:
        """Forget a server of *principal*, or hide a configured one from everybody."""
        server = self.visible(principal).get(name)
        if server is None:
            raise ServerNotFound(not_found(name, self.visible(principal)))
        if name in self._configured():
            self._removed.add(name)
            # Nor does what it has covered up come to light.
            for added in self._added.values():
                added.pop(name, None)
        else:
            del self._added[principal][name]
        return server

    def switch(self, principal: str, name: str, *, on: bool) -> None:
        """Enable or disable a server of *principal*, or a configured one for everybody.

        Raises:
            ToolError: there is none, or it lacks what it needs.
        """
        server = self.visible(principal).get(name)
        if server is None:
            raise ServerNotFound(not_found(name, self.visible(principal)))
        if on and isinstance(server, Lacking):
            raise InvalidArguments(f"server {name!r} cannot be enabled: {server.lacks}")
        if name in self._configured():
            self._switched[name] = not on
        else:
            self._added[principal][name] = attrs.evolve(server, disabled=not on)

    def restricts(self, name: str) -> bool:
        """Whether ``policy.network`` holds for the server of that name.

        What is configured is the operator's own choice.
        """
        return self.config.policy.network == "restricted" and name not in self._configured()

    def is_shared(self, name: str) -> bool:
        """Whether every principal sees the server of that name."""
        return name in self._configured()


def not_found(name: str, visible: Mapping[str, object]) -> str:
    if name == OUR_NAME:
        return (
            f"server {name!r} is this proxy itself: it has resources only, list_resources shows "
            "them; call its own tools without execute_tool"
        )
    known = f"there are: {', '.join(sorted(visible))}" if visible else "there are none"
    return f"no server {name!r}; {known}. list_servers tells more, add_server adds one"


def _is_admitted(config: Config, server: Server) -> bool:
    try:
        return admitted(config.policy, server) == server
    except Denied:
        return False
