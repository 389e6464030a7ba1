"""Scripts of clients, in a sandbox that can be killed.

`run` one script, its program and what comes out of it · `worker` that program, the only place that
knows the sandbox, and `outside` its way to us · `crossing` what both know: names, values, errors ·
`data` what a script is given of a result.
"""
