"""Calls of tools, which may outlive the requests that made them.

`call` one, and the task that it becomes · `calls` all of a session: where each begins, waits and
meets its fate · `places` how many there may be at once, `working` those that have become tasks, and
`finished` what these have come to, while it is kept · `outcomes` in which words that is said ·
`asked` which of them a question is of · `reissues` calls whose request may come again.
"""
