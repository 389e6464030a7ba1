"""MCP requests in, answers out: what a client may ask of us, over each transport and in each era.

`mcp` the requests of a client, answered from its session, over any transport; it has its `lists`,
`progress` and `log_messages` · `pipes` one client on standard input and output · `http` the
endpoint, whose eras are `handshake` and `modern`; both open `sessions` · `faces` what a client is
shown · `asking` it what servers ask · `sdk` what we use of the SDK's server beyond what it
promises.
"""
