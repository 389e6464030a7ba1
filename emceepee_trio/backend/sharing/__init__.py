"""One connection for all sessions of one principal, where the configuration asks for it.

`lease` what one session has of it, which to tools is a backend like any other, and a `mirror` of
what is known of the server · `hub` the connection, kept for as long as anybody has a lease, and
its `audience`, who hears what of it · `wire` whose a question is, and what is counted, of one
connection; `client` how a lease speaks on it, and `named` what the server has named for it ·
`common` the backend that all of that is of · `places` turns, where a server takes few requests at
once · `sharing` which hubs there are, and which servers cannot be shared any more · `stateless`
servers that lose nothing by it.

Nothing here is ever of two principals: a hub is made for one, and found by nobody else.
"""
