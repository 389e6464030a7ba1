"""One client: everything it owns, in one nursery.

`session` the nursery and its rooms: `calls` (each a `call`), `questions`, `timers`, `events`,
`buffers`, `results` (each is `kept`), the `index` of what can be found, and the `sweeper` of what
was kept long enough · `servers` which it has · `manager` where sessions begin and end, and servers
come to them and leave them.
"""
