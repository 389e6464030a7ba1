"""Which servers there are, for whom, and how far they may go.

`registry` shared by all sessions, while connections never are · `planned` those that a session had
from its beginning · `roots` which folders each is told to keep to · `spawning` which programs
clients may have started.
"""
