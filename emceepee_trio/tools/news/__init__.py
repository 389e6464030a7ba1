"""Tools for what happens without a call: `inbox` notifications and logs, `timers`, and `activity`,
which waits for any of it.
"""
