"""Whose a tool, a prompt or a resource is, by what it is called natively."""

from __future__ import annotations

import re

from ....backend.backend import Backend
from ....backend.catalogue.catalog import Entries, List
from ....backend.connections.turns import Turns
from ....errors import NotFound, ToolError
from ....model.json.intake import Steps
from ....model.native.names import may_be_of, native_name, plain_name
from ....model.native.uris import meant
from ....tools.common.asking import list_of
from ....tools.common.registry import Request
from .lists import lists_of

_HASHED = re.compile(r"_[0-9a-f]{6}")


async def tool_of(request: Request, native: str) -> tuple[str, str] | None:
    """Server and name of the tool that is called so, if anybody can have one.

    Raises:
        ToolError: its server cannot say.
    """
    session = request.session
    chosen = lists_of(session).chosen
    known = None if chosen is None else chosen.known.get(native)
    if known is not None and known[0] in session.backends:
        return known
    return await _owner(request, native, "tools")


async def prompt_of(request: Request, native: str) -> tuple[str, str] | None:
    """The same of a prompt."""
    return await _owner(request, native, "prompts")


async def _owner(request: Request, native: str, name: List) -> tuple[str, str] | None:
    session = request.session
    most = session.config.native.max_name
    backends = [
        each for each in session.backends.values() if may_be_of(each.server.name, native, most)
    ]
    plain: tuple[str, str] | None = None
    for backend in backends:
        server = backend.server.name
        if (theirs := plain_name(server, native, most)) is not None:
            plain = server, theirs
    if plain is not None and not _HASHED.fullmatch(native[-7:]):
        return plain  # whether it has that, its server knows
    for backend in backends:
        if (found := await _among(backend, backend.old(name), native, most)) is not None:
            return found
    failure: ToolError | None = None
    for backend in backends:
        try:
            listed = await list_of(request, backend, name)
        except ToolError as error:
            failure = error.with_traceback(None)  # which leads here again
        else:
            if (found := await _among(backend, listed.of_server, native, most)) is not None:
                return found
    if plain is None and failure is not None:
        raise failure
    return plain


async def _among(
    backend: Backend, entries: Entries, native: str, most: int
) -> tuple[str, str] | None:
    async with Turns() as turns:
        theirs = await turns.through(_called(backend.server.name, entries, native, most))
    return None if theirs is None else (backend.server.name, theirs)


def _called(server: str, entries: Entries, native: str, most: int) -> Steps[str | None]:
    for entry in entries:
        yield
        theirs = entry.get("name")
        if isinstance(theirs, str) and native_name(server, theirs, most) == native:
            return theirs
    return None


def resource_of(request: Request, native: str) -> tuple[Backend, str]:
    """The server whose resource or template it is, and what that calls it.

    Raises:
        NotFound: nobody's.
    """
    backends = request.session.backends
    found = meant(native, backends)
    if found is None:
        raise NotFound(
            f"no resource {native!r}; resources/list shows what there is", {"uri": native}
        )
    server, uri = found
    return backends[server], uri
