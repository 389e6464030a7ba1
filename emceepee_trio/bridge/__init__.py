"""``emceepee stdio --connect``: one client on standard input and output, its session on a daemon.

Read in this order: `serve` (the client's lines), `relay` (whose message goes where, and what
becomes of it when the daemon is away), `modern` (what is said with each request of that era),
`http` (one request to the daemon), `events` (the streams that answers come on).

Every window of every client starts one, so it is thin: nothing of the SDK, of trio, of the
configuration or of the daemon is imported here, and what waits is a thread. See "The bridge" in
docs/decisions.rst.
"""
