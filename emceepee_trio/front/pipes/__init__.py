"""One client on standard input and output.

`stdio` serves it, from its first line to its last · `reading` lines, and whose business they are ·
`answering` what is under way: calls of tools are ours, the SDK's dispatcher has all else ·
`writing` what is said of it, and who is owed that.
"""
