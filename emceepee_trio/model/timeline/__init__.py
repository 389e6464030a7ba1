"""What became of everything in a session, and when: facts in, rows with segments out.

`rows` one for each call, question, connection and timer; `replay` makes them of facts · `records`
the facts that are kept, of each session and of all · `thinning` which of them go first · `window`
what is looked at: from when to when, of which servers and outcomes · `words` what rows and facts
say.
"""
