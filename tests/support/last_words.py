"""What real programs wrote when they could not start, and what a person wants to know of it."""

from __future__ import annotations

LAST_WORDS = {
    "npx: no such version": (
        """
npm warn Unknown user config "nodedir". This will stop working in the next major version of npm.
npm error code ETARGET
npm error notarget No matching version found for @modelcontextprotocol/server-memory@99.99.99.
npm error notarget In most cases you or one of your dependencies are requesting a package version \
that doesn't exist.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-11-19-debug-0.log
""",
        "notarget No matching version found for @modelcontextprotocol/server-memory@99.99.99.",
    ),
    "npx: no such package": (
        """
npm error code E404
npm error 404 Not Found - GET https://packages.example/@modelcontextprotocol%2fserver-nope
npm error 404
npm error 404  The requested resource '@modelcontextprotocol/server-nope@*' could not be found or \
you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-11-19-debug-0.log
""",
        "404 Not Found - GET https://packages.example/@modelcontextprotocol%2fserver-nope",
    ),
    "npx: nobody there": (
        """
npm error code ECONNREFUSED
npm error syscall connect
npm error errno ECONNREFUSED
npm error FetchError: request to http://127.0.0.1:9/mcp-remote failed, reason: connect \
ECONNREFUSED 127.0.0.1:9
npm error     at ClientRequest.<anonymous> (/usr/lib/node_modules/npm/lib/index.js:130:14)
npm error     at process.processTicksAndRejections (node:internal/process/task_queues:83:21) {
npm error   code: 'ECONNREFUSED',
npm error   port: 9,
npm error   type: 'system'
npm error }
npm error
npm error If you are behind a proxy, please make sure that the 'proxy' config is set properly.  \
See: 'npm help config'
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-11-19-debug-0.log
""",
        (
            "FetchError: request to http://127.0.0.1:9/mcp-remote failed, reason: connect "
            "ECONNREFUSED 127.0.0.1:9"
        ),
    ),
    "npx: a certificate": (
        """
npm error code DEPTH_ZERO_SELF_SIGNED_CERT
npm error errno DEPTH_ZERO_SELF_SIGNED_CERT
npm error request to https://127.0.0.1:18443/mcp-remote failed, reason: self-signed certificate
npm error A complete log of this run can be found in: /home/u/.npm/_logs/2026-11-19-debug-0.log
""",
        "request to https://127.0.0.1:18443/mcp-remote failed, reason: self-signed certificate",
    ),
    "npx: usage": (
        "[15398] Usage: mcp-remote <https://server-url> [callback-port] [--debug]",
        "Usage: mcp-remote <https://server-url> [callback-port] [--debug]",
    ),
    "uvx: no such package": (
        """
error: No solution found when resolving tool dependencies
  cause: Because mcp-server-nope was not found in the package registry and you require \
mcp-server-nope, we can conclude that your requirements are unsatisfiable.
""",
        (
            "error: No solution found when resolving tool dependencies: Because "
            "mcp-server-nope was not found in the package registry and you require "
            "mcp-server-nope, we can conclude that your requirements are unsatisfiable."
        ),
    ),
    "uvx: nobody there": (
        """
warning: Invalid `SSL_CERT_FILE`. Path is not a file: /dev/null. No default certificates will be \
trusted.
error: Failed to fetch: http://127.0.0.1:9/simple/mcp-server-git/
  cause: error sending request for url (http://127.0.0.1:9/simple/mcp-server-git/)
  cause: client error (Connect)
  cause: tcp connect error
  cause: Connection refused (os error 111)
""",
        (
            "error: Failed to fetch: http://127.0.0.1:9/simple/mcp-server-git/: Connection "
            "refused (os error 111)"
        ),
    ),
    "uvx: a certificate, and a hint": (
        """
error: Failed to fetch: `https://packages.example/simple/mcp-server-git/`
  Caused by: Request failed after 3 retries
  Caused by: client error (Connect)
  Caused by: invalid peer certificate: UnknownIssuer

hint: Consider enabling use of system TLS certificates with the `--system-certs` command-line flag
""",
        (
            "error: Failed to fetch: `https://packages.example/simple/mcp-server-git/`: "
            "invalid peer certificate: UnknownIssuer"
        ),
    ),
    "docker: no daemon": (
        """
docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon \
running?

Run 'docker run --help' for more information
""",
        (
            "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is "
            "the docker daemon running?"
        ),
    ),
    "docker: no image": (
        """
Unable to find image 'mcp/nope:latest' locally
docker: Error response from daemon: pull access denied for mcp/nope, repository does not exist or \
may require 'docker login'

Run 'docker run --help' for more information
""",
        (
            "docker: Error response from daemon: pull access denied for mcp/nope, repository "
            "does not exist or may require 'docker login'"
        ),
    ),
    "python: no module to run": (
        "/usr/bin/python3: No module named mcp_server_nope",
        "/usr/bin/python3: No module named mcp_server_nope",
    ),
    "python: no module to import": (
        """
Traceback (most recent call last):
  File "/srv/server.py", line 1, in <module>
    import requests_nope
ModuleNotFoundError: No module named 'requests_nope'
""",
        "ModuleNotFoundError: No module named 'requests_nope'",
    ),
    "python: one exception after the other": (
        """
    self._sslobj.do_handshake()
ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/server.py", line 7, in <module>
    return opener.open(url, data, timeout)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed>
""",
        (
            "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] "
            "certificate verify failed>"
        ),
    ),
    "python: a variable": (
        """
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "<frozen os>", line 679, in __getitem__
KeyError: 'GITHUB_TOKEN'
""",
        "KeyError: 'GITHUB_TOKEN'",
    ),
    "python: its own words": (
        "Please set GITHUB_TOKEN to a token of yours.",
        "Please set GITHUB_TOKEN to a token of yours.",
    ),
    "python: an argument": (
        """
usage: mcp-server-git [-h] --repository REPOSITORY
mcp-server-git: error: the following arguments are required: --repository
""",
        "mcp-server-git: error: the following arguments are required: --repository",
    ),
    "node: no module": (
        """
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module 'nope'
Require stack:
- /srv/[eval]
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/srv/[eval]' ]
}

Node.js v20.20.2
""",
        "Error: Cannot find module 'nope'",
    ),
    "node: a variable": (
        """
[eval]:1
async function main(){throw new Error('BRAVE_API_KEY environment variable is required')} main()
                            ^

Error: BRAVE_API_KEY environment variable is required
    at main ([eval]:1:29)
    at node:internal/main/eval_string:51:3

Node.js v20.20.2
""",
        "Error: BRAVE_API_KEY environment variable is required",
    ),
    "node: its own words": (
        "Error: SLACK_BOT_TOKEN is required\nUsage: server [options]",
        "Error: SLACK_BOT_TOKEN is required",
    ),
    "node: a cause": (
        """
TypeError: fetch failed
    at node:internal/deps/undici/undici:14976:13
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5) {
  [cause]: Error: self-signed certificate
      at TLSSocket.onConnectSecure (node:_tls_wrap:1699:34)
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT'
  }
}
""",
        "TypeError: fetch failed: Error: self-signed certificate",
    ),
    "a shell": ("sh: 1: nope-command: not found", "sh: 1: nope-command: not found"),
    "nothing": ("", None),
    "only signs": ("}\n", "}"),
}
