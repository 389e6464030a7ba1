"""Servers that are programs.

`spec` how to start one · `start` its start, `starts` how many start at once, and `pulse` whether
one still works · `process` one of them, its pipes and the `lines` on them, and `footprint` what it
takes of the machine · `reaper` that nothing of it is left, and `lifeline` that nothing is if we are
killed · `files` how many there are for all of that.
"""
