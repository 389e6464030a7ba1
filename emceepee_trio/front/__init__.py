"""MCP requests in, answers out: what a client may ask of us, over each transport and in each era.

`mcp` the requests of a client, answered from its session, over any transport; it has its `lists`,
`progress` and `log_messages` · `pipes` one client on standard input and output · `http` the
endpoint, whose eras are `handshake` and `modern`; both open `sessions`, and have what few ask for
answered `by_the_sdk` · `faces` what a client is shown · `asking` it what servers ask, `news` what
it is told without asking, `tasks` of the protocol · `address` what a URL says · `sdk` what we use
of the SDK's server beyond what it promises.
"""
