"""Clients over HTTP that initialize, and have streams that they can resume.

`clients` a client, and the connection it speaks on now · `streams` all streams of one, `stream` one
of them: a log with cursors, `line` which of them makes room · `readers` the connections that read
one.
"""
