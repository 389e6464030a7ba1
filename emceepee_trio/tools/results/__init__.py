"""Answers of servers that are too long to be shown.

`shown` what is shown of an answer · `preview` that of one which is kept, with its `ends` ·
`reading` the tool that reads `parts` of it, by `grep` and by `selecting`.
"""
