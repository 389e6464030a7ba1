"""Which programs clients may have started: ``policy.spawn``.

Whoever may choose a variable of a program or its folder may choose what it runs, as may who chooses
on which PATH it is looked for. So on the allowlist a client chooses nothing that is not listed.
"""

from __future__ import annotations

import attrs

from ...config import AllowedProgram, Policy, Server
from ...errors import Denied
from ...model.json.problems import show
from ...model.text.globs import matches


def admitted(policy: Policy, server: Server) -> Server:
    """*server*, which a client wants started, as it may be.

    Raises:
        Denied: it may not; says what the operator could do about it.
    """
    if server.command is None:
        return server
    match policy.spawn:
        case "deny":
            raise Denied("policy.spawn is deny: this daemon starts no programs for its clients")
        case "allowlist":
            return _listed(policy, server)
        case _:
            return server


def _listed(policy: Policy, server: Server) -> Server:
    words = (server.command or "", *server.args)
    found = [entry for entry in policy.allowed if _is_of(entry, words)]
    if not found:
        raise Denied(
            "policy.spawn is allowlist and no entry of policy.spawn_allowlist matches this whole "
            "command line; only the operator can add one"
        )
    objections = []
    for entry in found:
        if (objection := _objection(entry, server)) is None:
            return attrs.evolve(server, cwd=entry.cwd)
        objections.append(objection)
    raise Denied(
        "policy.spawn is allowlist and the entry of policy.spawn_allowlist for this command line "
        + objections[0]
    )


def _is_of(entry: AllowedProgram, words: tuple[str, ...]) -> bool:
    # The whole argument vector: a pattern for the runner alone would allow anything.
    return len(words) == len(entry.command) and all(map(matches, entry.command, words))


def _objection(entry: AllowedProgram, server: Server) -> str | None:
    if others := sorted(set(server.env) - set(entry.env)):
        return (
            f"lets clients set no variable {show(others[0])}; leave it out of env, or have the "
            "operator name it in the env of the entry"
        )
    if server.cwd not in (None, entry.cwd):
        return (
            "lets clients choose no folder; leave cwd out, or have the operator set the cwd of "
            "the entry"
        )
    return None
