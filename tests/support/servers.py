"""Servers that others wrote, all at once, as somebody has them who starts on a new machine.

``python tests/support/servers.py [NAMES] [--proxy]``, or ``nox -s servers -- …``: npx and uvx
download each of them into empty caches, and each has to connect at the first try, however long
that takes, as long as it works. Prints a table, and exits with 1 if a try has failed.

With ``--proxy`` the registries are reached through a proxy with a certificate authority of its own,
as companies have them. Only this program's environment says where that is: what installs the
servers must have it from there. Needs npx, uvx, and openssl for the proxy.
"""

from __future__ import annotations

import argparse
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from emceepee_trio.commands.common.remote import RemoteDaemon, RemoteSession
from served import serve

Json = dict[str, Any]
Stream = trio.SSLStream[trio.SocketStream]

LONGEST = 900.0
"""Seconds until all are there. A slow network takes a part of it, and then it is no use anyway."""


def npx(package: str, *args: str, **env: str) -> Json:
    return {"command": "npx", "args": ["-y", package, *args], "env": env}


def uvx(*args: str, **env: str) -> Json:
    return {"command": "uvx", "args": [*args], "env": env}


def servers(folder: str) -> dict[str, Json]:
    """None of them needs an account in order to start."""
    return {
        "everything": npx("@modelcontextprotocol/server-everything"),
        "filesystem": npx("@modelcontextprotocol/server-filesystem", folder),
        "memory": npx("@modelcontextprotocol/server-memory", MEMORY_FILE_PATH=f"{folder}/memory"),
        "thinking": npx("@modelcontextprotocol/server-sequential-thinking"),
        "playwright": npx("@playwright/mcp", "--headless"),
        "devtools": npx("chrome-devtools-mcp", "--headless"),
        "context7": npx("@upstash/context7-mcp"),
        "notion": npx("@notionhq/notion-mcp-server", NOTION_TOKEN="none"),
        "github": npx("@modelcontextprotocol/server-github"),
        "tavily": npx("tavily-mcp", TAVILY_API_KEY="none"),
        "git": uvx("mcp-server-git", "--repository", folder),
        "time": uvx("mcp-server-time"),
        "fetch": uvx("mcp-server-fetch"),
        "sqlite": uvx("--with", "mcp<2", "mcp-server-sqlite", "--db-path", f"{folder}/db"),
        "aws-docs": uvx("awslabs.aws-documentation-mcp-server"),
        "duckduckgo": uvx("duckduckgo-mcp-server"),
    }


@attrs.define(eq=False)
class Seen:
    """Of one server."""

    tries: int = 1
    still: str = ""
    """The last that was said while it was starting."""
    error: str = ""
    took: float | None = None
    tools: int = 0

    @property
    def is_well(self) -> bool:
        return self.took is not None and self.tries == 1 and not self.error


def look(client: RemoteSession, seen: Mapping[str, Seen], since: float) -> bool:
    """Whether all are there."""
    listed = ask(client, "list_servers", detail="full")["servers"]
    for server in listed:
        known = seen[server["name"]]
        if known.took is not None:
            continue
        known.tries = max(known.tries, 1 + server.get("reconnect_attempt", 0))
        known.error = server.get("last_error") or known.error
        known.still = server.get("starting") or known.still
        if server["status"] == "connected":
            known.took = time.monotonic() - since
    return all(known.took is not None for known in seen.values())


def ask(client: RemoteSession, tool: str, /, **arguments: Any) -> Any:
    said = client.call(tool, arguments)["content"][0]["text"]
    return json.loads(said)


def start_all(folder: Path, entries: Mapping[str, Json], environment: Mapping[str, str]) -> bool:
    """Whether each has connected at its first try."""
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": entries, "start": "eager"}), "utf-8")
    seen = {name: Seen() for name in entries}
    with serve(folder, "--no-auth", "--config", str(config), **environment) as served:
        began = time.monotonic()
        with RemoteSession.connected(
            RemoteDaemon(served.url.removesuffix("/mcp"), None), "servers"
        ) as client:
            while not look(client, seen, began) and time.monotonic() < began + LONGEST:
                time.sleep(0.5)
            for name, known in seen.items():
                if known.took is not None:
                    known.tools = count(ask(client, "list_tools", server=name, detail="summary"))
    print(f"{'server':<12}{'seconds':>9}{'tools':>7}{'tries':>7}  last said while it started")
    for name, known in seen.items():
        took = "-" if known.took is None else f"{known.took:.1f}"
        what = f"FAILED: {known.error}" if not known.is_well else known.still
        print(f"{name:<12}{took:>9}{known.tools:>7}{known.tries:>7}  {what[:200]}")
    return all(known.is_well for known in seen.values())


def count(said: Json) -> int:
    return sum(len(group["tools"]) for group in said["tools"]) + int(said.get("more", 0))


# -- a proxy that reads what goes through it -------------------------------------------------------


class Authority:
    """Signs a certificate for whoever is asked for; openssl does the work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.pem"
        self._lock = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=An authority for tests", "-keyout", "ca.key", "-out", "ca.pem"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        )

    def _openssl(self, *args: str) -> None:
        subprocess.run(["openssl", *args], cwd=self.folder, capture_output=True, check=True)

    def context(self, host: str) -> ssl.SSLContext:
        with self._lock:
            if host not in self._contexts:
                self._openssl(
                    *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                    *("-subj", "/CN=one of many", "-keyout", f"{host}.key", "-out", f"{host}.pem"),
                    *("-CA", "ca.pem", "-CAkey", "ca.key"),
                    *("-addext", f"subjectAltName=DNS:{host}"),
                    *("-addext", "basicConstraints=critical,CA:FALSE"),
                    *("-addext", "authorityKeyIdentifier=keyid"),
                )
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                files = (self.folder / f"{host}.pem", self.folder / f"{host}.key")
                context.load_cert_chain(*files)
                self._contexts[host] = context
            return self._contexts[host]


@attrs.define(eq=False)
class Proxy:
    """CONNECT alone; what goes through is read by it and encrypted again."""

    authority: Authority
    hosts: Counter[str] = attrs.field(factory=Counter, init=False)
    """How often each was asked for."""
    port: int = attrs.field(default=0, init=False)
    ready: threading.Event = attrs.field(factory=threading.Event, init=False)
    _scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _token: trio.lowlevel.TrioToken | None = attrs.field(default=None, init=False)

    async def run(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        self.ready.set()
        with self._scope:
            await trio.serve_listeners(self._tunnel, [listener])

    def stop(self) -> None:
        """From another thread."""
        assert self._token is not None
        self._token.run_sync_soon(self._scope.cancel)

    async def _tunnel(self, near: trio.SocketStream) -> None:
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await near.receive_some() or b"\r\n\r\n"
            method, target = head.decode().split()[:2]
            if method != "CONNECT":
                await near.send_all(b"HTTP/1.1 405 Only CONNECT\r\n\r\n")
                return
            host, _, port = target.rpartition(":")
            self.hosts[host] += 1
            context = await trio.to_thread.run_sync(self.authority.context, host)
            await near.send_all(b"HTTP/1.1 200 Connected\r\n\r\n")
            inner = trio.SSLStream(near, context, server_side=True, https_compatible=True)
            outer = await trio.open_ssl_over_tcp_stream(host, int(port), https_compatible=True)
            async with outer, inner, trio.open_nursery() as nursery:
                nursery.start_soon(_pump, outer, inner, nursery.cancel_scope)
                nursery.start_soon(_pump, inner, outer, nursery.cancel_scope)
        except* (OSError, ValueError, trio.BrokenResourceError):
            pass  # either side has left
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(near)


async def _pump(source: Stream, sink: Stream, scope: trio.CancelScope) -> None:
    while data := await source.receive_some():
        await sink.send_all(data)
    scope.cancel()


@contextmanager
def proxied(folder: Path) -> Iterator[dict[str, str]]:
    """What the environment says of a proxy that runs meanwhile."""
    authority = Authority(folder)
    proxy = Proxy(authority)
    thread = threading.Thread(target=trio.run, args=(proxy.run,))
    thread.start()
    proxy.ready.wait()
    try:
        url = f"http://127.0.0.1:{proxy.port}"
        ours = str(authority.certificate)
        yield {
            **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), url),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
            **dict.fromkeys(("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"), ours),
            **dict.fromkeys(("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NPM_CONFIG_CAFILE"), ours),
        }
    finally:
        proxy.stop()
        thread.join()
    asked = ", ".join(f"{host} ({times})" for host, times in sorted(proxy.hosts.items()))
    print(f"through the proxy: {asked or 'NOTHING'}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAMES", help="of the servers to start")
    parser.add_argument("--proxy", action="store_true", help="through one with its own authority")
    options = parser.parse_args()
    with ExitStack() as stack:
        made = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(made))
        (folder / "caches").mkdir()
        (folder / "data").mkdir()
        subprocess.run(["git", "init", "-q", str(folder / "data")], check=True)
        environment = {
            "NPM_CONFIG_CACHE": str(folder / "caches" / "npm"),
            "UV_CACHE_DIR": str(folder / "caches" / "uv"),
            "UV_TOOL_DIR": str(folder / "caches" / "tools"),
        }
        if options.proxy:
            environment |= stack.enter_context(proxied(folder))
        entries = servers(str(folder / "data"))
        chosen = {name: entries[name] for name in options.names or entries}
        well = start_all(folder, chosen, environment)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
