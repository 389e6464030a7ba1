"""What people are shown, and what they write.

`show` what a peer wrote · `brief` short · `redact` without secrets · `last_words` of a program ·
`variables` and `globs` in what people write · `toml_edits` changes that · `patterns` of peers.
"""
