"""Clients over HTTP that initialize, and have streams that they can resume.

`clients` a client, and the connection it speaks on now · `streams` all streams of one, `stream` one
of them: a log with cursors · `readers` the connections that read one.
"""
