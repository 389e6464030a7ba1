"""Which variables of our own environment a child gets. Pure.

The *usual* ones are what installers, TLS and desktops need to work as they do in the operator's
shell. What is *ours* is never handed on, whoever asks for it. All between these may hold a secret
of somebody's: a child gets it if the operator says so (``inherit_env``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, TypeAlias

from .allowed import AllowedNames

More: TypeAlias = tuple[str, ...] | Literal["all"]
"""Names and globs beside the usual ones."""

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY")
CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_*", "CARGO_HTTP_CAINFO", "DENO_CERT"),
    *("DENO_TLS_CA_STORE", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA"),
    *("NODE_TLS_REJECT_UNAUTHORIZED",),
)
REGISTRIES = (
    *("NPM_CONFIG_*", "YARN_*", "PNPM_*", "COREPACK_*", "BUN_*", "DENO_*", "UV_*", "PIP_*"),
    *("PIPX_*", "DOCKER_*", "CONTAINER_HOST", "CONTAINERS_*", "REGISTRY_AUTH_FILE"),
    *("GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB"),
)
_OTHERS = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "COLORTERM", "NO_COLOR", "TZ", "USER"),
    *("TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "LC_*", "XDG_*"),
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "KRB5*"),
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "PULSE_SERVER"),
    # Shims of version managers find by these what they stand for.
    *("NVM_*", "FNM_*", "VOLTA_*", "PYENV_*", "ASDF_*", "MISE_*", "JAVA_HOME", "GOPATH"),
    # Windows' own, which it hands into WSL, and without which its programs do not start there.
    *("WSL_*", "WSLENV", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "PROGRAMFILES*"),
    *("COMMONPROGRAMFILES*", "COMMONPROGRAMW6432", "PROGRAMW6432", "ALLUSERSPROFILE", "PUBLIC"),
    *("SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS", "USERPROFILE"),
    *("USERNAME", "USERDOMAIN", "COMPUTERNAME", "HOMEDRIVE", "HOMEPATH"),
    *("NUMBER_OF_PROCESSORS", "PROCESSOR_*"),
)

USUAL = (*PROXIES, *CERTIFICATES, *REGISTRIES, *_OTHERS)
"""In either case, since programs differ in which they read."""

OURS = (
    *("EMCEEPEE_*", "LISTEN_*", "NOTIFY_SOCKET", "WATCHDOG_*", "MAINPID", "MANAGERPID"),
    *("INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_*"),
    *("CREDENTIALS_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY", "CACHE_DIRECTORY"),
    *("LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY", "FDSTORE"),
)
"""Said to this daemon, by its user or by systemd. A child would take it for its own."""

PUBLISHING = ("UV_PUBLISH_*",)
"""Secrets that nobody needs in order to install."""

_USUAL, _OURS = AllowedNames.of(USUAL), AllowedNames.of(OURS)
_PUBLISHING, _NETWORK = (
    AllowedNames.of(PUBLISHING),
    AllowedNames.of((*PROXIES, *CERTIFICATES, *REGISTRIES)),
)


def is_ours(name: str) -> bool:
    """Also of a glob that can stand for nothing else."""
    return name.upper() in _OURS


def is_usual(name: str) -> bool:
    upper = name.upper()
    return upper in _USUAL and upper not in _PUBLISHING


def together(of_all: More, own: More | None) -> More:
    """What is said of all programs, and of one: lists add up, and its own replaces "all"."""
    if own is None or own == "all" or of_all == "all":
        return of_all if own is None else own
    return tuple(dict.fromkeys((*of_all, *own)))


def inherited(
    ours: Mapping[str, str], more: More = (), tokens: Collection[str] = ()
) -> dict[str, str]:
    """What a child gets of *ours*: nothing that is one of our *tokens*, whatever its name."""
    named = AllowedNames.of(() if more == "all" else more)
    return {
        name: value
        for name, value in ours.items()
        if (more == "all" or is_usual(name) or name in named)
        and not is_ours(name)
        and value not in tokens
    }


def of_network(names: Iterable[str]) -> list[str]:
    """Those that say how to reach a registry: proxies, certificates, settings of installers."""
    return sorted(name for name in names if name.upper() in _NETWORK)
