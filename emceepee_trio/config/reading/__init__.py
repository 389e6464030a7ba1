"""How files become a configuration.

`files` finds and reads them · `documents` says what is in one, and everything that is wrong with
it, with its `paths` made absolute · `dialects` knows other programs' files, `ourselves` what in
them is us.
"""
