"""One client: everything it owns, in one nursery.

`session` the nursery and its rooms: `calls` (each a `call`), `questions` and the `relay` that puts
them to clients, `reissues` (calls whose request may come again), `timers`, `events`, `buffers`,
`results` (each is `kept`) · `servers` which it has, and what of them can be found · `manager` where
sessions begin and end, and servers come to them and leave them.
"""
