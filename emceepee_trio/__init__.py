"""One MCP connection to every MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import Config as Config
    from .config import Server as Server
    from .embedding import ServerAuth as ServerAuth
    from .embedding import open_app as open_app

__all__ = ["Config", "Server", "ServerAuth", "open_app"]


def __getattr__(name: str) -> Any:
    """What a program imports that has us inside; the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import config, embedding  # noqa: PLC0415 - see above

    return getattr(embedding, name, None) or getattr(config, name)
