"""Which servers there are, for whom: shared by all sessions, while connections never are.

Configured servers are everybody's. Those added by a tool, or on the page, belong to the principal
that added them. What anybody changes of either lasts until the daemon ends.
Knows no session; `session/manager.py` tells the sessions of a change.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...config import LOCAL, OUR_NAME, OWN, Config, Lacking, Server, with_defaults
from ...errors import Denied, InvalidArguments, LimitReached, ServerNotFound
from .spawning import admitted

OPERATORS = (OWN, LOCAL)
"""Principals that run the daemon."""
_NOTHING: Mapping[str, object] = {}


@attrs.define(eq=False)
class Registry:
    config: Config
    _written: Mapping[str, Server] = attrs.field(init=False)
    """Those of the configuration, by name."""
    _changed: dict[str, Server] = attrs.field(factory=dict, init=False)
    """Configured servers that somebody has edited or switched, as they are now."""
    _removed: set[str] = attrs.field(factory=set, init=False)
    """Configured ones, too. What was made of one before stays for when it is back."""
    _added: dict[str, dict[str, Server]] = attrs.field(factory=dict, init=False)
    """By principal, then by name."""

    def __attrs_post_init__(self) -> None:
        self._written = _by_name(self.config)

    def visible(self, principal: str) -> Mapping[str, Server]:
        """The servers of a principal, by name."""
        return dict(self._added.get(principal, {})) | self._configured()

    def _configured(self) -> dict[str, Server]:
        return {
            name: self._changed.get(name, server)
            for name, server in self._written.items()
            if name not in self._removed
        }

    def _configured_as(self, name: str) -> Server | None:
        """The same of one; who changes servers asks it of each in each session."""
        return None if name in self._removed else self._changed.get(name, self._written.get(name))

    def changed(self) -> Mapping[str, Server | None]:
        """Configured servers that are not as they are configured; None: removed."""
        return {**self._changed, **dict.fromkeys(self._removed)}

    def principals(self) -> list[str]:
        """Who has added servers."""
        return list(self._added)

    def owners(self, name: str) -> list[str]:
        """Principals that have added a server of that name."""
        return [owner for owner, added in self._added.items() if name in added]

    def check(
        self, principal: str, server: Server, said: Mapping[str, object] = _NOTHING
    ) -> Server:
        """Whether *principal* may add *server*, whose entry has *said* so much.

        Returns:
            The server, with what the operator says of how it is started.

        Raises:
            ToolError: it may not; says why.
        """
        server = server.with_inherited(self.config.inherit_env)
        server = with_defaults(server, self.config.defaults, said)
        configured = self._configured_as(server.name)
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
        """Take new servers; what somebody has changed stays so unless its entry is another.

        What a client has added, or edited, goes if its program may not be started any more.
        """
        before = self._written
        # One that is as it was stays the same object: that is seen at once, in each session.
        after = {
            name: before[name] if server == before.get(name) else server
            for name, server in _by_name(config).items()
        }
        same = {name for name, server in after.items() if server is before.get(name)}
        changed = {name: now for name, now in self._changed.items() if name in same}
        self.config, self._written = config, after
        self._changed = {
            name: now
            for name, now in changed.items()
            if not starts_otherwise(now, after[name]) or _is_admitted(config, now)
        }
        self._removed &= same
        for added in self._added.values():
            for name, server in list(added.items()):
                if not _is_admitted(config, server):
                    del added[name]
                elif server.command is not None:  # its client has no say in what it inherits
                    added[name] = attrs.evolve(server, inherit_env=config.inherit_env or None)

    def add(self, principal: str, server: Server) -> None:
        if self._configured_as(server.name) != server:
            self._added.setdefault(principal, {})[server.name] = server

    def remove(self, principal: str, name: str) -> Server:
        """Forget a server of *principal*, or hide a configured one from everybody.

        Raises:
            ToolError: there is none, or it is not theirs to remove.
        """
        server = self._changeable(principal, name)
        if self.is_shared(name):
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
            ToolError: there is none, it is not theirs to change, or it lacks what it needs.
        """
        server = self._changeable(principal, name)
        if on and isinstance(server, Lacking):
            raise InvalidArguments(f"server {name!r} cannot be enabled: {server.lacks}")
        self._put(principal, attrs.evolve(server, disabled=not on))

    def edit(self, principal: str, server: Server, said: Mapping[str, object] = _NOTHING) -> None:
        """Put *server*, whose entry has *said* so much, in the place of the one of its name.

        Raises:
            ToolError: there is none, or it is not theirs to change in this way.
        """
        before = self._changeable(principal, server.name)
        if isinstance(before, Lacking):
            raise InvalidArguments(f"server {server.name!r} cannot be edited: {before.lacks}")
        if self.is_shared(server.name) and principal not in OPERATORS:
            # What is kept of its secrets would be theirs to send elsewhere.
            raise Denied(
                f"server {server.name!r} is configured, so only who runs this daemon can edit it"
            )
        server = with_defaults(server, self.config.defaults, said)
        if starts_otherwise(server, before):
            server = admitted(self.config.policy, server)
        self._put(principal, server)

    def restore(self, principal: str, name: str) -> None:
        """Have a configured server as it is configured; or, for who does not run the daemon, one
        that was removed as it was before.

        Raises:
            ToolError: nothing of it is changed, or it is not theirs to change.
        """
        if name not in self.changed():
            raise InvalidArguments(f"server {name!r} is not changed: there is nothing to restore")
        self._check_owner(principal, name)
        now, written = self._changed.get(name), self._written.get(name)
        if principal in OPERATORS or now is None or written is None or not is_edited(now, written):
            self._changed.pop(name, None)
        elif name not in self._removed:
            raise Denied(f"server {name!r} is edited: only who runs this daemon can take that back")
        self._removed.discard(name)

    def _put(self, principal: str, server: Server) -> None:
        if not self.is_shared(server.name):
            self._added[principal][server.name] = server
        elif server == self._written.get(server.name):
            self._changed.pop(server.name, None)
        else:
            self._changed[server.name] = server

    def _changeable(self, principal: str, name: str) -> Server:
        server = self.visible(principal).get(name)
        if server is None:
            raise ServerNotFound(not_found(name, self.visible(principal)))
        if self.is_shared(name):
            self._check_owner(principal, name)
        return server

    def _check_owner(self, principal: str, name: str) -> None:
        """Of what is configured."""
        if self.config.policy.configured == "operator" and principal not in OPERATORS:
            raise Denied(
                f"policy.configured is operator: {name!r} is configured, so only who runs this "
                "daemon may change or remove it"
            )

    def restricts(self, name: str) -> bool:
        """Whether ``policy.network`` holds for the server of that name.

        What is configured is the operator's own choice; a URL that was edited is not.
        """
        if self.config.policy.network != "restricted":
            return False
        now, written = self._configured_as(name), self._written.get(name)
        return now is None or written is None or now.url != written.url

    def is_shared(self, name: str) -> bool:
        """Whether every principal sees the server of that name."""
        return self._configured_as(name) is not None


def _by_name(config: Config) -> Mapping[str, Server]:
    return {server.name: server for server in config.servers}


def is_edited(server: Server, before: Server) -> bool:
    """Whether it is more than enabled or disabled."""
    return attrs.evolve(server, disabled=before.disabled) != before


def starts_otherwise(server: Server, before: Server) -> bool:
    """Whether another program runs, or runs otherwise."""
    same = attrs.evolve(
        server, command=before.command, args=before.args, env=before.env, cwd=before.cwd
    )
    return same != server or server.inherit_env != before.inherit_env


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
