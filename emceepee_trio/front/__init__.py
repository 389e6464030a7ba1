"""MCP requests in, answers out: what a client may ask of us, over each transport and in each era.

`mcp` the requests of a client, answered from its session, over any transport; `under_way` those
that are not answered, and who cancels them; what few ask for is answered `by_the_sdk`, as are our
`lists` · `progress` and `log_messages` are heard meanwhile · `pipes` one client on standard input
and output · `http` the endpoint, whose eras are `handshake` and `modern`; both open `sessions` ·
`faces` what a client is shown · `asking` it what servers ask, `news` what it is told beside
answers, `tasks` of the protocol · `address` what a URL says · `sdk` what we use of the SDK's server
beyond what it promises.
"""
