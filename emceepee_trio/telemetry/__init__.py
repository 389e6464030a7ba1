"""What is told to those who watch many programs, and how names of peers are bounded for them.

`readers` who reads all that is noted, such as the log · `labels` which names stand by themselves ·
`spans` traces: a span for each request, in the words of OpenTelemetry, which `conventions` has ·
`calls` may outlive those, as facts tell · `under_way` what both know of a message until it is
answered · `durations` how long requests took, in the same words · `export` sends both, by the
library that `sdk` alone imports.
"""
