"""Clients over HTTP that initialize, and have streams that they can resume.

`endpoint` what they ask, and the session that it is for · `clients` a client, and what it has
beside its session · `connection` one `initialize` of it and what follows · `streams` all streams of
one client, `stream` one of them: a log with cursors, `line` which of them makes room · `readers`
the connections that read one.
"""
