"""The configuration: frozen classes with every default and bound, and how files become them.

``settings``, ``server`` and ``policy`` are the keys, ``bounds`` the numbers that are not settings,
``roots`` the folders that servers are told to keep to; ``files`` reads them, ``dialects`` knows
other programs' files, ``ourselves`` what in them is us; ``schema`` tells editors of it,
``entries`` are servers as people edit them, and ``seen`` what of them is shown at all.
"""

from __future__ import annotations

from . import bounds
from .files import (
    ConfigError,
    Loaded,
    default_path,
    load,
    load_default,
    parse,
    read_text,
    server_from_arguments,
)
from .policy import AllowedProgram, Policy
from .schema import file_schema
from .server import ON_DEMAND, OUR_NAME, Lacking, Reconnect, Retry, Server
from .settings import (
    LOCAL,
    OWN,
    Config,
    ContextIn,
    Defaults,
    Health,
    Http,
    Limits,
    NativeSettings,
    PageSettings,
    ResultSettings,
    Telemetry,
    with_defaults,
)

__all__ = [
    "LOCAL",
    "ON_DEMAND",
    "OUR_NAME",
    "OWN",
    "AllowedProgram",
    "Config",
    "ConfigError",
    "ContextIn",
    "Defaults",
    "Health",
    "Http",
    "Lacking",
    "Limits",
    "Loaded",
    "NativeSettings",
    "PageSettings",
    "Policy",
    "Reconnect",
    "ResultSettings",
    "Retry",
    "Server",
    "Telemetry",
    "bounds",
    "default_path",
    "file_schema",
    "load",
    "load_default",
    "parse",
    "read_text",
    "server_from_arguments",
    "with_defaults",
]
