"""What subcommands share.

`configuration` where it comes from · `options` of several · `given` objects as people type them ·
`output` what is said, and where, `terminal` to people · `remote` a daemon that runs, `own` a
session where none does, `shell` either · `trying` servers · `interpreter` how Python
runs what serves · `client_entry` what leads a client to a daemon.
"""
