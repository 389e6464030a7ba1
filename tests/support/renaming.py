"""A proxy between a client that knows one server and our view ``native`` of it: it maps names.

A client that asks for ``echo`` is given what ``NAME__echo`` is, and hears of it as ``echo``; other
servers and tools of ours it is not shown. All else is passed on as it comes, streams line by line.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import attrs

Json = dict[str, Any]

OF_A_HOP = {"connection", "content-length", "host", "transfer-encoding"}
LISTS = {
    "tools": "name",
    "prompts": "name",
    "resources": "uri",
    "resourceTemplates": "uriTemplate",
}


@attrs.frozen
class Names:
    """Of one server, whose own have no ``__`` and are not cut."""

    server: str

    def there(self, said: Any) -> Any:
        """A request of the client, in native names."""
        params = said.get("params") if isinstance(said, dict) else None
        if not isinstance(params, dict):
            return said
        params = {**params}
        match said.get("method"):
            case "tools/call" | "prompts/get":
                self._map(params, "name", self._name)
            case "completion/complete" if isinstance(params.get("ref"), dict):
                params["ref"] = ref = {**params["ref"]}
                self._map(ref, "name", self._name)
                self._map(ref, "uri", self._uri)
            case "subscriptions/listen" if isinstance(params.get("notifications"), dict):
                params["notifications"] = wanted = {**params["notifications"]}
                uris = wanted.get("resourceSubscriptions")
                if isinstance(uris, list):
                    wanted["resourceSubscriptions"] = list(map(self._uri, uris))
            case str() as method if method.startswith("resources/"):
                self._map(params, "uri", self._uri)
        return {**said, "params": params}

    def of_header(self, method: str, value: str) -> str:
        """What is in the header of a request that names what it is about."""
        if method.startswith("resources/"):
            return self._uri(value)
        return self._name(value) if method in ("tools/call", "prompts/get") else value

    def back(self, said: Any) -> Any:
        """What comes back, in the server's own names, without what is not of it."""
        if isinstance(said, dict) and isinstance(result := said.get("result"), dict):
            for key, name in LISTS.items():
                if isinstance(result.get(key), list):
                    its = (self._name(""), self._uri(""), self._uri("ui://"))
                    result[key] = [each for each in result[key] if each[name].startswith(its)]
        text = json.dumps(said, ensure_ascii=False)
        text = text.replace(f'"{self._name("")}', '"').replace(self._uri("ui://"), "ui://")
        text = text.replace(self._uri(""), "")
        return json.loads(text)

    def _name(self, name: str) -> str:
        return f"{self.server}__{name}"

    def _uri(self, uri: str) -> str:
        app = uri.removeprefix("ui://")
        return f"{self.server}+{uri}" if app == uri else f"ui://{self.server}/{app}"

    @staticmethod
    def _map(params: Json, key: str, named: Callable[[str], str]) -> None:
        if isinstance(params.get(key), str):
            params[key] = named(params[key])


@contextmanager
def renamed(url: str, server: str) -> Iterator[str]:
    """The URL at which the native view at *url* looks as if it were that server."""
    names, target = Names(server), urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            said = json.loads(data)
            method = said.get("method", "") if isinstance(said, dict) else ""
            self.pass_on(json.dumps(names.there(said)).encode(), method)

        def do_GET(self) -> None:
            self.pass_on(None)

        do_DELETE = do_GET  # noqa: N815 - as it is looked for

        def pass_on(self, body: bytes | None, method: str = "") -> None:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in OF_A_HOP}
            # Where a request is refused for its host or origin, it is for the one that it had.
            port = f":{proxy.server_port}"
            headers["Host"] = self.headers.get("host", "").replace(port, f":{target.port}")
            for key, value in tuple(headers.items()):
                if key.lower() == "origin":
                    headers[key] = value.replace(port, f":{target.port}")
                elif key.lower() == "mcp-name":
                    headers[key] = names.of_header(method, value)
            upstream = HTTPConnection(str(target.hostname), target.port)
            try:
                upstream.request(self.command, f"{target.path}?{target.query}", body, headers)
                self.answer(upstream.getresponse())
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client has gone, and so do we
            finally:
                upstream.close()

        def answer(self, response: HTTPResponse) -> None:
            is_stream = response.headers.get_content_type() == "text/event-stream"
            data = b"" if is_stream else response.read()
            if data and response.headers.get_content_type() == "application/json":
                data = json.dumps(names.back(json.loads(data))).encode()
            self.send_response(response.status)
            for key, value in response.getheaders():
                if key.lower() not in {*OF_A_HOP, "date", "server"}:
                    self.send_header(key, value)
            if is_stream:
                self.send_header("connection", "close")
                self.close_connection = True
            else:
                self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            while is_stream and (line := response.readline()):
                start, _, rest = line.partition(b"data:")
                if not start and rest.strip():
                    line = b"data: " + json.dumps(names.back(json.loads(rest))).encode() + b"\n"
                self.wfile.write(line)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as proxy:
        proxy.daemon_threads = True  # streams end with the daemon behind
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}/mcp"
        finally:
            proxy.shutdown()
            thread.join()
