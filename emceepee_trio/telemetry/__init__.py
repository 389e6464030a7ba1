"""What is told to those who watch many programs, and how names of peers are bounded for them.

`readers` who reads all that is noted, such as the log · `labels` which names stand by themselves ·
`spans` traces: facts and requests in the words of OpenTelemetry, described in `conventions`, with
what is `under_way` · `durations` how long requests took, in the same words · `export` sends both,
by the library that `sdk` alone imports.
"""
