"""``emceepee stdio --connect``: one client on standard input and output, its session on a daemon.

Read in this order: `serve` (the client's lines), `relay` (what is asked, and what becomes of it),
`conversation` (its session on the daemon, opened, resumed, opened again), `daemon` (which may be
away), `modern` (what is said with each request of that era), `http` (one request), `events` (the
streams that answers come on).

Every window of every client starts one, so it is thin: nothing of the SDK, of trio, of the
configuration or of the daemon is imported here, and what waits is a thread. See "A bridge of
threads" in docs/decisions.rst.
"""
