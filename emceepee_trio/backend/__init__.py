"""One server of one session, kept connected.

`lifecycle` what becomes of a server, whatever happens to it: up, lost, tried again · `backend` has
that done, and is what a session has of it · `link` one connection, from the try to the loss ·
`chores` what it does beside answering calls · `start`, `starts` and `pulse` the start of a program,
how many start at once, and whether one still works · `retries` when next · `comeback` and `wishes`
what is done again on a new connection · `uses` who needs it · `shared` what all servers of a daemon
share.

`connections` is one negotiated connection, over a transport of `children` (programs) or `http`
(URLs); `catalogue` is what servers have, and what is remembered of that.
"""
