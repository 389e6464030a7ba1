"""Servers that are programs.

`spec` how to start one · `process` one of them, its pipes and the `lines` on them · `reaper` that
nothing of it is left, and `lifeline` that nothing is if we are killed · `files` how many there are
for all of that.
"""
