"""HTTP/1.1 on sockets of our own, for any ASGI app. Knows no MCP.

`binds` where to listen · `listen` how many connections, and the drain · `connection` one of them,
and a bound on everything its peer could make it wait for · `exchange` what is asked on it, one
request after the other · `requests` bytes to requests, `answers` answers to bytes · `asgi` the
types between here and an app.
"""
