"""Calls of tools, which may outlive the requests that made them.

`call` one, and the task that it becomes · `calls` all of a session: where each begins, waits and
meets its fate · `outcomes` in which words that is said · `finished` what tasks have come to, while
it is kept · `reissues` calls whose request may come again.
"""
