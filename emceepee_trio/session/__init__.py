"""One client: everything it owns, in one nursery.

`session` the nursery and its rooms: `calls` (each a `call`), `questions` and the `relay` that puts
them to clients, `timers`, `events`, `buffers`, `results` (each is `kept`), and the `sweeper` of
what was kept long enough · `servers` which it has, and what of them can be found · `manager` where
sessions begin and end, and servers come to them and leave them.
"""
