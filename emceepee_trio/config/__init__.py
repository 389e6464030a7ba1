"""The configuration: frozen classes with every default and bound, and how files become them.

``settings``, with its ``limits``, ``server``, with its ``treatment``, and ``policy`` are the keys,
``bounds`` the numbers that are not settings, ``roots`` the folders that servers are told to keep
to; ``reading`` makes them of files, ``schema`` tells editors of it, ``entries`` are servers as
people edit them, and ``seen`` what of them is shown at all.
"""

from __future__ import annotations

from . import bounds
from .limits import Limits
from .policy import AllowedProgram, Policy
from .reading.documents import ConfigError, Loaded, parse, server_from_arguments
from .reading.files import default_path, load, load_default, read_text
from .schema import file_schema
from .server import ON_DEMAND, OUR_NAME, Lacking, Server
from .settings import (
    LOCAL,
    OWN,
    Config,
    ContextIn,
    Defaults,
    Health,
    Http,
    NativeSettings,
    PageSettings,
    ResultSettings,
    Telemetry,
    with_defaults,
)
from .treatment import Reconnect, Retry

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
