"""Answers of servers that are too long to be shown.

`preview` what is shown of one that is kept · `reading` the tool that reads parts of it, by `grep`
and by `selecting`.
"""
