"""Calls of tools, which may outlive the requests that made them.

`call` one, and the task that it becomes · `calls` all of a session: where each begins, waits and
meets its fate · `reissues` those whose request may come again.
"""
