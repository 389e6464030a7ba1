"""Which servers there are, for whom, and how far they may go.

`registry` shared by all sessions, while connections never are · `changes` how servers come to
sessions that live, and leave them · `backends` those of one session · `planned` those that it had
from its beginning · `index` what can be found of them · `ledger` what its client has been told of
each, `unshown` what none is · `roots` which folders each is told to keep to · `spawning` which
programs clients may have started.
"""
