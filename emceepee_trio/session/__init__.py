"""One client: everything it owns, in one nursery.

`session` the nursery and its rooms: `calls`, `questions`, `timers`, `events` (with those that are
`pending`), `buffers`, `results` (each is `kept`) · `announcements` what all of them say, on its way
to who listens · `presence` whether anybody is there, and `idle` what becomes of it if nobody is ·
`servers` which it has, and what of them can be found · `manager` where sessions begin and end.
"""
