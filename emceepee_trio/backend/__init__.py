"""One server of one session, kept connected.

`backend` what a session has of a server, and `private` a connection that is its own · `supervisor`
keeps that: up, lost, tried again, as `lifecycle` decides, with `retries` for when next · `link` one
connection, from the try to the loss, and `chores` what it does beside answering calls:
`reconciliation` and `preferences` are what is done again on a new one · `uses` who needs it ·
`shared` what all servers of a daemon share.

`connections` is one negotiated connection, over a transport of `children` (programs) or `http`
(URLs); `catalogue` is what servers have, and what is remembered of that; `sharing` is one
connection for many sessions.
"""
