"""The unit of the daemon: for one user, or for a whole machine. ``packaging`` has one of each."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

NAME = "emceepee.service"
SYSTEM = Path("/etc/systemd/system") / NAME

USUAL_PATH = (
    *("%h/.local/bin", "%h/.cargo/bin", "%h/.npm-global/bin", "%h/.volta/bin", "%h/bin"),
    *("/usr/local/bin", "/usr/bin", "/bin"),
)
"""Where npx, uvx and what was installed for one user are mostly found."""

VARIABLES = "%h/.config/emceepee/environment"
"""A file of a user with what the configuration refers to."""

_HEAD = """\
# {about}
[Unit]
Description=One MCP connection to every MCP server
Documentation=https://modelcontextprotocol.io
{after}StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=notify
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=2
# shutdown_grace_ms, 5 s for what cannot wait any longer, and some more.
TimeoutStopSec=20
# What a server{whose} has started ends with the daemon, wherever it hides.
KillMode=control-group

"""

_USER = """\
# Where npx, uvx and what was installed for one user are found.
{environment}# Variables that the configuration refers to, such as tokens of servers.
EnvironmentFile=-{variables}

NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
UMask=0077
LimitNOFILE=16384

[Install]
WantedBy=default.target
"""

_MACHINE = """\
DynamicUser=yes
StateDirectory=emceepee
StateDirectoryMode=0700
CacheDirectory=emceepee
# npx and uvx want a home, and a cache to put programs in.
Environment=HOME=%S/emceepee
Environment=XDG_CACHE_HOME=%C/emceepee
{environment}# Variables that the configuration refers to, such as tokens of servers.
EnvironmentFile=-/etc/emceepee/environment

# What stdio servers still need: to run what they have downloaded (no noexec), just-in-time
# compilers (no MemoryDenyWriteExecute), their own namespaces (no RestrictNamespaces, browsers
# sandbox themselves), the network.
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
SystemCallArchitectures=native
UMask=0077
LimitNOFILE=16384
TasksMax=4096

[Install]
WantedBy=multi-user.target
"""


@attrs.frozen
class Unit:
    """Words of its command, and variables that it has; both as systemd reads them."""

    is_users: bool
    about: str
    command: str
    environment: Mapping[str, str]

    @classmethod
    def of_user(
        cls, program: Sequence[str], options: Sequence[str], environ: Mapping[str, str]
    ) -> Unit:
        """With the PATH of the shell that it is made in, so that servers are found as there."""
        here = [each for each in environ.get("PATH", "").split(os.pathsep) if each[:1] == "/"]
        path = os.pathsep.join(dict.fromkeys([*map(_literal, here), *USUAL_PATH]))
        kept = {"PATH": path}
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            if environ.get(name):
                kept[name] = _literal(environ[name])
        words = _command(program, options)
        return cls(True, "For one user, by `emceepee install-service --user`.", words, kept)

    @classmethod
    def of_machine(cls, program: Sequence[str], options: Sequence[str]) -> Unit:
        words = _command(program, options)
        path = "%S/emceepee/.local/bin:/usr/local/bin:/usr/bin:/bin"
        about = "For a whole machine, by `emceepee install-service`."
        return cls(False, about, words, {"PATH": path})

    def __str__(self) -> str:
        said = {name: f"{name}={text}" for name, text in self.environment.items()}
        environment = "".join(f"Environment={_quoted(each)}\n" for each in said.values())
        after = (
            "" if self.is_users else "After=network-online.target\nWants=network-online.target\n"
        )
        whose = " of yours" if self.is_users else ""
        head = _HEAD.format(about=self.about, command=self.command, after=after, whose=whose)
        rest = _USER if self.is_users else _MACHINE
        return head + rest.format(environment=environment, variables=VARIABLES)


def program_in(unit: str) -> str:
    """What such a unit starts; nothing if it cannot be told."""
    line = re.search(r"(?m)^ExecStart=(.*)$", unit)
    words = [_unquoted(each) for each in re.findall(_A_WORD, line[1])] if line else []
    words = words[len(BY_SHELL) :] if words[: len(BY_SHELL)] == [*BY_SHELL] else words
    meant = {"$$": "$", "%%": "%", "%h": str(Path.home())}
    return re.sub(r"\$\$|%%|%h", lambda found: meant[found[0]], words[0]) if words else ""


BY_SHELL = ("/bin/sh", "-c", 'exec "$$0" "$$@"')
"""What starts a program whose name systemd refuses as that of one, for the signs that are in it."""

_A_WORD = r'"(?:[^"\\]|\\.)*"|\S+'


def _command(program: Sequence[str], options: Sequence[str]) -> str:
    words = " ".join(map(_word, (*program, "serve", *options)))
    if any(sign in "$\"'\\" or not _is_plain(sign) for sign in program[0]):
        words = f"{' '.join(map(_quoted, BY_SHELL))} {words}"
    return words


def _literal(text: str) -> str:
    """A per cent sign begins what systemd fills in."""
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """One of a command line: without quotes if it needs none."""
    return _quoted(_literal(text).replace("$", "$$"))


def _quoted(text: str) -> str:
    """On one line, whatever is in it: behind a line break would be a setting of its own."""
    if not text or any(sign in " \"'\\;" or not _is_plain(sign) for sign in text):
        inner = text.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(map(_escaped, inner)) + '"'
    return text


def _is_plain(sign: str) -> bool:
    return sign.isprintable() or sign == " "


def _escaped(sign: str) -> str:
    """Each byte of what cannot stand there, also of what is no UTF-8."""
    if _is_plain(sign):
        return sign
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(sign))


def _unquoted(word: str) -> str:
    if not word.startswith('"'):
        return word

    def meant(found: re.Match[bytes]) -> bytes:
        sign = found[1]
        return bytes.fromhex(sign[1:].decode()) if sign.startswith(b"x") else sign

    return os.fsdecode(re.sub(rb"\\(x[0-9a-f]{2}|.)", meant, os.fsencode(word[1:-1])))
